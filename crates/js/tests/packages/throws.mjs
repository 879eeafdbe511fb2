throw new Error('of a module'); export {};
