export { f as 'module.exports' }; function f() { return 'the function'; }
