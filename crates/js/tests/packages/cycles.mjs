// `require` of ES modules while others are evaluated.
import { lazy } from './cycle/lazy.cjs';
import { leaf } from './cycle/leaf.mjs';
import './cycle/back.cjs';
console.log('body', leaf, lazy('../cycles.mjs'), lazy('./bad.mjs'), lazy('./bad.mjs'), lazy('./waits.mjs'), lazy('./waits.mjs'));
setTimeout(() => console.log('later', lazy('./leaf.mjs'), lazy('./other.mjs'), lazy('./top.mjs'), lazy('../cycles.mjs'), lazy('./waits.mjs'), lazy('./other.mjs')), 5);
