// `os`: the few facts that programs ask for.
(function (natives) {
  'use strict';
  return {
    EOL: '\n',
    tmpdir: () => natives.tmpdir(),
    hostname: () => natives.hostname(),
    platform: () => natives.platform,
    type: () => 'Linux',
    arch: () => natives.arch,
    homedir: () => process.env.HOME ?? '/',
    cpus: () => [],
    availableParallelism: () => 1,
    setPriority() {},
    getPriority: () => 0,
    constants: { signals: {}, errno: {} },
  };
})
