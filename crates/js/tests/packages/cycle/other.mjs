import { lazy } from './lazy.cjs'; export const other = lazy('./other.mjs'); export default other; console.log('other', other);
