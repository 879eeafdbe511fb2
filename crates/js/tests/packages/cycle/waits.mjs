await null; export const waits = 1;
