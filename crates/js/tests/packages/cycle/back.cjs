console.log('back', require('./lazy.cjs').lazy('./top.mjs'));
