import '../cycles.mjs'; import './leaf.mjs'; export const top = 1;
