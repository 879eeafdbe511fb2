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
  };
  if (natives.hostname) os.hostname = () => natives.hostname();
  if (natives.systemName) os.type = () => natives.systemName();
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
    os.constants = {
      priority: {
        PRIORITY_LOW: 19, PRIORITY_BELOW_NORMAL: 10, PRIORITY_NORMAL: 0,
        PRIORITY_ABOVE_NORMAL: -7, PRIORITY_HIGH: -14, PRIORITY_HIGHEST: -20,
      },
    };
  }
  return os;
})
