// `path`, for systems with `/`.
(function (natives, internal) {
  'use strict';
  const need = (value, name) => {
    if (typeof value !== 'string') throw internal.invalidType(name, 'string', value);
  };
  const clean = (text, isAbsolute) => {
    const parts = [];
    for (const part of text.split('/')) {
      if (part === '' || part === '.') continue;
      if (part !== '..') parts.push(part);
      else if (parts.length && parts[parts.length - 1] !== '..') parts.pop();
      else if (!isAbsolute) parts.push('..');
    }
    return parts.join('/');
  };
  const path = {
    sep: '/',
    delimiter: ':',
    isAbsolute(text) { need(text, 'path'); return text.startsWith('/'); },
    normalize(text) {
      need(text, 'path');
      if (text === '') return '.';
      const isAbsolute = text.startsWith('/');
      let result = clean(text, isAbsolute);
      if (result === '' && !isAbsolute) result = '.';
      if (result !== '' && text.endsWith('/')) result += '/';
      return isAbsolute ? `/${result}` : result;
    },
    join(...parts) {
      for (const part of parts) need(part, 'path');
      const text = parts.filter((part) => part !== '').join('/');
      return text === '' ? '.' : path.normalize(text);
    },
    resolve(...parts) {
      let text = '';
      for (let i = parts.length - 1; i >= -1 && !text.startsWith('/'); i--) {
        const part = i < 0 ? natives.cwd() : parts[i];
        need(part, `paths[${i}]`);
        if (part !== '') text = text === '' ? part : `${part}/${text}`;
      }
      return `/${clean(text, true)}`;
    },
    relative(from, to) {
      need(from, 'from');
      need(to, 'to');
      const a = path.resolve(from).split('/').filter(Boolean);
      const b = path.resolve(to).split('/').filter(Boolean);
      let same = 0;
      while (same < a.length && same < b.length && a[same] === b[same]) same++;
      return [...a.slice(same).map(() => '..'), ...b.slice(same)].join('/');
    },
    dirname(text) {
      need(text, 'path');
      const trimmed = text.replace(/\/+$/, '');
      if (trimmed === '') return text === '' ? '.' : '/';
      const at = trimmed.lastIndexOf('/');
      if (at < 0) return '.';
      return trimmed.slice(0, at).replace(/\/+$/, '') || '/';
    },
    basename(text, suffix = '') {
      need(text, 'path');
      const trimmed = text.replace(/\/+$/, '');
      const base = trimmed.slice(trimmed.lastIndexOf('/') + 1);
      return suffix !== '' && base !== suffix && base.endsWith(suffix) ? base.slice(0, -suffix.length) : base;
    },
    extname(text) {
      const base = path.basename(text);
      const at = base.lastIndexOf('.');
      return at <= 0 || base === '..' ? '' : base.slice(at);
    },
    parse(text) {
      need(text, 'path');
      const base = path.basename(text);
      const ext = path.extname(text);
      const root = text.startsWith('/') ? '/' : '';
      const dir = path.dirname(text);
      return { root, dir: dir === '.' && !text.startsWith('.') ? '' : dir, base, ext, name: ext ? base.slice(0, -ext.length) : base };
    },
    format(parts) {
      const dir = parts.dir || parts.root;
      const base = parts.base || `${parts.name || ''}${parts.ext || ''}`;
      if (!dir) return base;
      return dir === parts.root ? `${dir}${base}` : `${dir}/${base}`;
    },
    toNamespacedPath: (text) => text,
  };
  path.posix = path;
  path.win32 = null;
  return path;
})
