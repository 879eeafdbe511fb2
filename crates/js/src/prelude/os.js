// `os`: what the platform knows. A function without a native is not there.
(function (natives, internal) {
  'use strict';
  const { outOfRange, invalidType } = internal;
  const os = {
    EOL: natives.platform === 'win32' ? '\r\n' : '\n',
    tmpdir: () => natives.tmpdir(),
    platform: () => natives.platform,
    arch: () => natives.arch,
    availableParallelism: () => natives.availableParallelism(),
    endianness: () => (new Uint8Array(new Uint16Array([1]).buffer)[0] === 1 ? 'LE' : 'BE'),
    devNull: natives.platform === 'win32' ? '\\\\.\\nul' : '/dev/null',
    constants: { signals: { __proto__: null } },
  };
  if (natives.hostname) os.hostname = () => natives.hostname();
  if (natives.systemName) {
    for (const [place, name] of ['type', 'release', 'version', 'machine'].entries()) os[name] = { [name]: () => natives.systemName()[place] }[name];
  }
  if (natives.osUptime) {
    os.uptime = () => natives.osUptime();
    os.loadavg = () => natives.loadAverage();
    os.totalmem = () => natives.systemMemory()[0];
    os.freemem = () => natives.systemMemory()[1];
  }
  if (natives.userInfo) {
    os.userInfo = (options) => {
      const [uid, gid, ...texts] = natives.userInfo();
      const [username, homedir, shell] = options?.encoding === 'buffer' ? texts.map((text) => internal.builtin('buffer').Buffer.from(text)) : texts;
      return { __proto__: null, uid, gid, username, homedir, shell };
    };
  }
  if (natives.networkInterfaces) {
    os.networkInterfaces = () => {
      const found = {};
      for (const [name, address, netmask, mac, isInternal, bits, scopeid] of natives.networkInterfaces()) {
        const entry = { address, netmask, family: scopeid === undefined ? 'IPv4' : 'IPv6', mac, internal: isInternal, cidr: `${address}/${bits}` };
        (found[name] ??= []).push(scopeid === undefined ? entry : { ...entry, scopeid });
      }
      return found;
    };
  }
  if (natives.cpus) os.cpus = () => natives.cpus();
  if (natives.homedir) os.homedir = () => process.env.HOME || natives.homedir();
  if (natives.priority) {
    const integer = (value, name, least, most) => {
      if (typeof value !== 'number') throw invalidType(name, 'number', value);
      if (!Number.isInteger(value)) throw outOfRange(name, 'an integer', value);
      if (value < least || value > most) throw outOfRange(name, `>= ${least} && <= ${most}`, value);
      return value;
    };
    const idOf = (pid) => integer(pid, 'pid', -2147483648, 2147483647);
    const known = (syscall, f) => {
      try {
        return f();
      } catch (error) {
        const { errno, code, message } = error;
        throw internal.systemError('ERR_SYSTEM_ERROR', 'A system error occurred', { errno, code, message, syscall });
      }
    };
    os.getPriority = (pid = 0) => {
      idOf(pid);
      return known('uv_os_getpriority', () => natives.priority(pid));
    };
    os.setPriority = (pid, priority) => {
      if (priority === undefined) [pid, priority] = [0, pid];
      idOf(pid);
      integer(priority, 'priority', -20, 19);
      known('uv_os_setpriority', () => natives.setPriority(pid, priority));
    };
    os.constants.priority = {
      PRIORITY_LOW: 19, PRIORITY_BELOW_NORMAL: 10, PRIORITY_NORMAL: 0,
      PRIORITY_ABOVE_NORMAL: -7, PRIORITY_HIGH: -14, PRIORITY_HIGHEST: -20,
    };
  }
  for (const name of ['HUP', 'INT', 'QUIT', 'ILL', 'TRAP', 'ABRT', 'BUS', 'FPE', 'KILL', 'USR1', 'SEGV', 'USR2', 'PIPE', 'ALRM', 'TERM', 'CHLD', 'CONT', 'STOP', 'TSTP', 'TTIN', 'TTOU', 'URG', 'XCPU', 'XFSZ', 'VTALRM', 'PROF', 'WINCH', 'IO', 'PWR', 'SYS']) {
    const number = natives.signalNumber(`SIG${name}`);
    if (number !== undefined) os.constants.signals[`SIG${name}`] = number;
  }
  return os;
})
