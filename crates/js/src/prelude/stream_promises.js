// `stream/promises`.
(function (natives, internal) {
  'use strict';
  return internal.builtin('stream').promises;
})
