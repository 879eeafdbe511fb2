// `readline/promises`.
(function (natives, internal) {
  'use strict';
  return internal.builtin('readline').promises;
})
