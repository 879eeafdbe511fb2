'use strict';
exports.run = async (name) => { await null; await null; return `ran-${name}`; };
exports.fail = async () => { await null; throw new TypeError('failed'); };
