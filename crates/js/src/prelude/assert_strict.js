(function (natives, internal) {
  'use strict';
  return internal.builtin('assert').strict;
})
