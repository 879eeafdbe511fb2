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
  // A list of paths, one by one.
  promises.glob = async function* glob(pattern, options) {
    yield* await internal.fsPromised(internal.fsOperations.glob(pattern, options));
  };
  return promises;
})
