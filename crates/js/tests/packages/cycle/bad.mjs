import './leaf.mjs'; throw new Error('bad');
