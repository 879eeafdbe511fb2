// `url`: its functions.
(function (natives, internal) {
  'use strict';
  const { URL, URLSearchParams, fileURLToPath, pathToFileURL } = internal.builtin('web');
  return { URL, URLSearchParams, fileURLToPath, pathToFileURL };
})
