'use strict';
exports.line = (text) => { console.log(text); };
