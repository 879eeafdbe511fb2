// `dns/promises`.
(function (natives, internal) {
  'use strict';
  return internal.builtin('dns').promises;
})
