exports.lazy = (name) => {
  try {
    return Object.keys(require(name)).join();
  } catch (error) {
    return error.code ?? error.message;
  }
};
// This one is linked with the program, and not evaluated yet.
console.log('early', exports.lazy('./leaf.mjs'), exports.lazy('../cycles.mjs'));
