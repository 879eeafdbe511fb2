// The names that a CommonJS file exports, as far as its source shows them: an import needs them before the
// file has run. The forms are those that compilers write, and Node finds the same.
(function (natives, internal) {
  'use strict';
  // Comments, texts, and what looks like a regular expression.
  const skipped = /\/\*[^]*?\*\/|\/\/[^\n]*|'[^'\\\n]*(?:\\[^][^'\\\n]*)*'|"[^"\\\n]*(?:\\[^][^"\\\n]*)*"|`[^`\\]*(?:\\[^][^`\\]*)*`|(^|[(,=:[!&|?{};+\-*%~^<>\n]|\b(?:return|typeof|case|in|of|do|else))([ \t]*)\/(?![*\/])(?:[^\\\/[\n]|\\.|\[(?:[^\\\]\n]|\\.)*\])+\//g;
  const name = '[A-Za-z_$][\\w$]*';
  const own = '(?<![.\\w$])(?:module\\s*\\.\\s*)?exports';
  const required = '\\brequire\\s*\\(\\s*"(\\d+)"\\s*\\)';
  const assigned = new RegExp(`${own}\\s*(?:\\.\\s*(${name})|\\[\\s*"(\\d+)"\\s*\\])\\s*=`, 'g');
  const member = `${name}(?:\\s*\\.\\s*${name}|\\[\\s*"\\d+"\\s*\\])?`;
  const getter = `get\\s*(?::\\s*function\\s*(?:${name}\\s*)?)?\\(\\s*\\)\\s*\\{\\s*return\\s+${member}\\s*;?\\s*\\}`;
  const defined = new RegExp(`\\bdefineProperty\\s*\\(\\s*${own}\\s*,\\s*"(\\d+)"\\s*,\\s*\\{\\s*(?:enumerable\\s*:\\s*(?:true|!0)\\s*,\\s*(?:value\\s*:|${getter})|value\\s*:)`, 'g');
  const whole = new RegExp(`(?<![.\\w$])module\\s*\\.\\s*exports\\s*=\\s*(?:${required}|\\{)`, 'g');
  const starred = new RegExp(`\\b__export(?:Star)?\\s*\\(\\s*${required}`, 'g');
  const looped = new RegExp(`\\bObject\\s*\\.\\s*keys\\s*\\(\\s*(${name})\\s*\\)\\s*\\.\\s*forEach\\s*\\(\\s*function\\s*\\(\\s*${name}\\s*\\)\\s*\\{\\s*if\\s*\\(`, 'g');
  const part = new RegExp(`\\s*(?:\\.\\.\\.\\s*(?:${required}|(${name}))|"(\\d+)"\\s*:\\s*(?=${name})|(${name})(?!\\s*:)|(${name})\\s*:\\s*(?=${name}))`, 'y');
  const value = new RegExp(`\\s*${name}`, 'y');
  const comma = /\s*,/y;

  return (source) => {
    const texts = [];
    const plain = source.replace(skipped, (found, before, spaces) => {
      if (before !== undefined) return `${before}${spaces}0`;
      if (found[0] === '/') return found.includes('\n') ? '\n' : ' ';
      if (found[0] === '`') return '""';
      texts.push(found.slice(1, -1));
      return `"${texts.length - 1}"`;
    });
    const names = new Set();
    const others = [];
    for (const [, word, text] of plain.matchAll(assigned)) names.add(word ?? texts[text]);
    for (const [, text] of plain.matchAll(defined)) names.add(texts[text]);
    for (const [, text] of plain.matchAll(starred)) others.push(texts[text]);
    for (const [, word] of plain.matchAll(looped)) {
      const made = new RegExp(`\\b${word.replaceAll('$', '\\$')}\\s*=\\s*(?:${name}\\s*\\(\\s*)?${required}`).exec(plain);
      if (made !== null) others.push(texts[made[1]]);
    }
    for (const found of plain.matchAll(whole)) {
      if (found[1] !== undefined) {
        others.push(texts[found[1]]);
        continue;
      }
      for (let at = found.index + found[0].length; ;) {
        part.lastIndex = at;
        const [all, text, , key, short, long] = part.exec(plain) ?? [];
        if (all === undefined) break;
        at += all.length;
        value.lastIndex = at;
        // An accessor, which ends the list.
        if (short === 'get' && value.test(plain)) break;
        if (text !== undefined) others.push(texts[text]);
        const word = key === undefined ? short ?? long : texts[key];
        if (word !== undefined) names.add(word);
        if (key !== undefined || long !== undefined) {
          value.lastIndex = at;
          at += value.exec(plain)[0].length;
        }
        comma.lastIndex = at;
        const next = comma.exec(plain);
        if (next === null) break;
        at += next[0].length;
      }
    }
    return { names: [...names], others };
  };
})
