// `fs/promises`: the operations of `fs`, each as a promise that the operation's callback settles.
(function (natives, internal) {
  'use strict';
  internal.builtin('fs');
  const promises = { constants: internal.fsShapes.constants };
  for (const name of Object.keys(internal.fsOperations)) {
    // Bad arguments reject.
    promises[name] = { [name](...args) {
      try {
        return internal.fsPromised(internal.fsOperations[name](...args));
      } catch (error) {
        return Promise.reject(error);
      }
    } }[name];
  }
  return promises;
})
