'use strict';
exports.later = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
