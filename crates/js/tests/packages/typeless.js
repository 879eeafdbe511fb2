export const typeless = import.meta.filename !== undefined;
