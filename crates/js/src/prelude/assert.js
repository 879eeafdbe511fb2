// `assert`: Node's functions, errors and texts. The text of a falsy value has no line of the source.
(function (natives, internal) {
  'use strict';
  const { coded, hide, invalidType, needFunction } = internal;
  const { inspect } = internal.builtin('util');
  const { deepLoose, deepStrict } = internal.builtin('equal');

  const heads = {
    deepStrictEqual: 'Expected values to be strictly deep-equal:', strictEqual: 'Expected values to be strictly equal:',
    strictEqualObject: 'Expected "actual" to be reference-equal to "expected":', deepEqual: 'Expected values to be loosely deep-equal:',
    notDeepStrictEqual: 'Expected "actual" not to be strictly deep-equal to:', notStrictEqual: 'Expected "actual" to be strictly unequal to:',
    notStrictEqualObject: 'Expected "actual" not to be reference-equal to "expected":', notDeepEqual: 'Expected "actual" not to be loosely deep-equal to:',
    notIdentical: 'Values have same structure but are not reference-equal:',
  };
  const isObject = (value) => value !== null && (typeof value === 'object' || typeof value === 'function');
  const shown = (value) => inspect(value, { compact: false, customInspect: false, depth: 1000, maxArrayLength: Infinity, showHidden: false, showProxy: false, sorted: true, breakLength: Infinity });
  const plain = (error) => Object.defineProperty(Object.assign(Object.create(error), error), Symbol.for('nodejs.util.inspect.custom'), { value: () => `[${error.name}: ${error.message}]` });
  // The lines of both, with marks: the longest common list of lines is shown once.
  const compared = (actual, expected) => {
    const same = (i, j) => actual[i] === expected[j] || `${actual[i]},` === expected[j] || actual[i] === `${expected[j]},`;
    const [rows, columns] = [actual.length, expected.length];
    if (rows * columns > 4e6) return [...actual.map((line) => `+ ${line}`), ...expected.map((line) => `- ${line}`)];
    const lengths = Array.from({ length: rows + 1 }, () => new Uint32Array(columns + 1));
    for (let i = rows - 1; i >= 0; i--) {
      for (let j = columns - 1; j >= 0; j--) lengths[i][j] = same(i, j) ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
    const lines = [];
    for (let i = 0, j = 0; i < rows || j < columns;) {
      if (i < rows && j < columns && same(i, j)) {
        lines.push(`  ${actual[i].length > expected[j].length ? actual[i] : expected[j]}`);
        i += 1;
        j += 1;
      } else if (j === columns || (i < rows && lengths[i + 1][j] >= lengths[i][j + 1])) {
        lines.push(`+ ${actual[i++]}`);
      } else {
        lines.push(`- ${expected[j++]}`);
      }
    }
    return lines;
  };
  const difference = (actual, expected, operator, message) => {
    if (operator === 'strictEqual' && isObject(actual) && isObject(expected)) operator = 'strictEqualObject';
    const [one, two] = [shown(actual), shown(expected)];
    if (operator === 'strictEqualObject' && one === two) return `${message ?? heads.notIdentical}\n\n${one}\n`;
    const isSimple = !one.includes('\n') && !two.includes('\n') && one !== two && one.length + two.length <= 12 && !isObject(actual) && !isObject(expected) && (actual !== 0 || expected !== 0);
    if (isSimple) return `${message ?? heads[operator]}\n\n${one} !== ${two}\n`;
    let place = '';
    if (!isObject(actual) && !isObject(expected) && !one.includes('\n') && !two.includes('\n') && one.length + two.length < 80) {
      let same = 0;
      while (one[same] === two[same] && same < one.length) same += 1;
      if (same > 2) place = `${' '.repeat(same + 2)}^\n`;
    }
    return `${message ?? heads[operator]}\n+ actual - expected\n\n${compared(one.split('\n'), two.split('\n')).join('\n')}\n${place}`;
  };
  const cut = (lines, most) => (lines.length > most ? [...lines.slice(0, most - 4), '...'] : lines);
  const written = (actual, expected, operator) => {
    // The stacks of errors would always differ.
    if (actual instanceof Error && expected instanceof Error) [actual, expected] = [actual, expected].map(plain);
    if (operator === 'deepStrictEqual' || operator === 'strictEqual') return difference(actual, expected, operator);
    if (operator === 'notDeepStrictEqual' || operator === 'notStrictEqual') {
      const head = heads[operator === 'notStrictEqual' && isObject(actual) ? 'notStrictEqualObject' : operator];
      const lines = cut(shown(actual).split('\n'), 50);
      return lines.length === 1 ? `${head}${lines[0].length > 5 ? '\n\n' : ' '}${lines[0]}` : `${head}\n\n${lines.join('\n')}\n`;
    }
    const text = (value) => {
      const all = shown(value);
      return all.length > 512 && !operator.endsWith('qual') ? `${all.slice(0, 509)}...` : all;
    };
    if (operator === 'notDeepEqual') return `${heads.notDeepEqual}\n\n${text(actual)}`;
    if (operator === 'deepEqual') return `${heads.deepEqual}\n\n${text(actual)}\n\nshould loosely deep-equal\n\n${text(expected)}`;
    return `${text(actual)} ${operator} ${text(expected)}`;
  };

  class AssertionError extends Error {
    constructor(options) {
      internal.needObject(options, 'options');
      const { actual, expected, message, operator } = options;
      const isOwn = message !== undefined && message !== null;
      super(isOwn ? (options.diffed ? difference(actual, expected, operator, `${message}`) : `${message}`) : written(actual, expected, operator));
      this.generatedMessage = !isOwn;
      hide(this, 'name', 'AssertionError');
      this.code = 'ERR_ASSERTION';
      Object.assign(this, { actual, expected, operator, diff: options.diff ?? 'simple' });
      const stack = `${this.stack}`;
      hide(this, 'stack', `AssertionError [ERR_ASSERTION]: ${this.message}\n${stack.slice(Math.max(0, stack.search(/^ {4}at /m)))}`);
    }
    toString() { return `${this.name} [${this.code}]: ${this.message}`; }
  }
  const fail = (fields, isGenerated) => {
    if (fields.message instanceof Error) throw fields.message;
    const error = new AssertionError(fields);
    if (isGenerated !== undefined) error.generatedMessage = isGenerated;
    throw error;
  };

  const truthy = (count, value, message) => {
    if (value) return;
    if (count === 0) fail({ actual: value, expected: true, message: 'No value argument passed to `assert.ok()`', operator: '==' }, true);
    const isOwn = message !== undefined && message !== null;
    fail({ actual: value, expected: true, message: isOwn ? message : 'The expression evaluated to a falsy value', operator: '==' }, !isOwn);
  };
  const assert = function assert(...args) { truthy(args.length, ...args); };
  const ok = function ok(...args) { truthy(args.length, ...args); };
  const binary = (operator, name, holds) => ({
    [name](actual, expected, message) {
      if (arguments.length < 2) throw coded(TypeError, 'ERR_MISSING_ARGS', 'The "actual" and "expected" arguments must be specified');
      if (!holds(actual, expected)) fail({ actual, expected, message, operator, diffed: operator === 'strictEqual' || operator === 'deepStrictEqual' });
    },
  })[name];
  const loose = (a, b) => a == b || (Number.isNaN(a) && Number.isNaN(b));

  // Compares an error with what is expected of it.
  const matches = (error, expected, message, operator) => {
    let text = message;
    let isGenerated = message === undefined || message === null;
    if (expected instanceof RegExp) {
      if (expected.test(String(error))) return;
      text ??= `The input did not match the regular expression ${inspect(expected)}. Input:\n\n${inspect(String(error))}\n`;
    } else if (typeof expected === 'object') {
      const keys = Object.keys(expected);
      if (expected instanceof Error) keys.push('name', 'message');
      else if (keys.length === 0) throw internal.invalidValue('error', expected, 'may not be an empty object');
      if (isObject(error)) {
        const holds = (key) => key in error && (typeof error[key] === 'string' && expected[key] instanceof RegExp ? expected[key].test(error[key]) : deepStrict(error[key], expected[key]));
        if (keys.every(holds)) return;
        if (text === undefined || text === null) {
          class Comparison {}
          const [one, two] = [new Comparison(), new Comparison()];
          for (const key of keys) {
            if (key in error) one[key] = typeof error[key] === 'string' && expected[key] instanceof RegExp && expected[key].test(error[key]) ? expected[key] : error[key];
            two[key] = expected[key];
          }
          text = written(one, two, 'deepStrictEqual');
        }
      } else {
        text ??= written(error, expected, 'deepStrictEqual');
      }
    } else {
      if (expected.prototype !== undefined && error instanceof expected) return;
      if (expected === Error || Object.prototype.isPrototypeOf.call(Error, expected)) {
        const isError = error instanceof Error;
        text ??= `The error is expected to be an instance of "${expected.name}". Received ${isError ? `"${error.constructor.name}"` : `"${inspect(error, { depth: -1 })}"`}${isError ? `\n\nError message:\n\n${error.message}` : ''}`;
      } else {
        const answer = internal.apply(expected, {}, [error]);
        if (answer === true) return;
        const name = expected.name ? `"${expected.name}" ` : '';
        text ??= `The ${name}validation function is expected to return "true". Received ${inspect(answer)}${error instanceof Error ? `\n\nCaught error:\n\n${error}` : ''}`;
      }
    }
    fail({ actual: error, expected, message: text, operator }, isGenerated);
  };
  const none = {};
  const expects = (thrown, operator, expected, message) => {
    if (typeof expected === 'string') {
      if (message !== undefined) throw invalidType('error', ['Object', 'Error', 'function', 'RegExp'], expected);
      if (thrown !== none && (isObject(thrown) ? thrown.message : thrown) === expected) {
        throw coded(TypeError, 'ERR_AMBIGUOUS_ARGUMENT', `The "error/message" argument is ambiguous. The error ${isObject(thrown) ? 'message ' : ''}"${expected}" is identical to the message.`);
      }
      message = expected;
      expected = undefined;
    } else if (expected !== undefined && expected !== null && typeof expected !== 'object' && typeof expected !== 'function') {
      throw invalidType('error', ['Object', 'Error', 'function', 'RegExp'], expected);
    }
    if (thrown === none) {
      const name = expected?.name ? ` (${expected.name})` : '';
      fail({ actual: undefined, expected, operator, message: message instanceof Error ? message : `Missing expected ${operator === 'rejects' ? 'rejection' : 'exception'}${name}${message ? `: ${message}` : '.'}` }, false);
    }
    if (expected !== undefined && expected !== null) matches(thrown, expected, message, operator);
  };
  const expectsNot = (thrown, operator, expected, message) => {
    if (thrown === none) return;
    if (typeof expected === 'string') [expected, message] = [undefined, expected];
    const isMeant = expected === undefined || (expected instanceof RegExp ? expected.test(String(thrown)) : thrown instanceof expected);
    if (!isMeant) throw thrown;
    fail({ actual: thrown, expected, operator, message: `Got unwanted ${operator === 'doesNotReject' ? 'rejection' : 'exception'}${message ? `: ${message}` : '.'}\nActual message: "${thrown?.message}"` }, false);
  };
  const tried = (f) => {
    needFunction(f, 'fn');
    try {
      f();
    } catch (error) {
      return error;
    }
    return none;
  };
  const waited = async (promise) => {
    if (typeof promise === 'function') {
      promise = promise();
      if (!isObject(promise) || typeof promise.then !== 'function') {
        throw coded(TypeError, 'ERR_INVALID_RETURN_VALUE', `Expected instance of Promise to be returned from the "promiseFn" function but got ${isObject(promise) ? 'an instance of' : 'type'}${/ Received (?:type |an instance of )?(.*)$/s.exec(invalidType('a', 'string', promise).message)?.[1].replace(/^/, ' ')}.`);
      }
    } else if (!isObject(promise) || typeof promise.then !== 'function') {
      throw invalidType('promiseFn', ['function', 'Promise'], promise);
    }
    try {
      await promise;
    } catch (error) {
      return error;
    }
    return none;
  };
  const matched = (name, isWanted) => ({
    [name](string, regexp, message) {
      if (!(regexp instanceof RegExp)) throw invalidType('regexp', 'RegExp', regexp);
      if (typeof string === 'string' && regexp.test(string) === isWanted) return;
      const isOwn = message !== undefined && message !== null;
      const text = typeof string !== 'string'
        ? `The "string" argument must be of type string.${/ Received .*/s.exec(invalidType('a', 'string', string).message)[0]}`
        : `The input ${isWanted ? 'did not match' : 'was expected to not match'} the regular expression ${inspect(regexp)}. Input:\n\n${inspect(string)}\n`;
      fail({ actual: string, expected: regexp, message: isOwn ? message : text, operator: name }, !isOwn);
    },
  })[name];

  const functions = {
    ok, AssertionError,
    fail(message) { fail({ message: message ?? 'Failed', operator: 'fail' }, message === undefined); },
    equal: binary('==', 'equal', loose), notEqual: binary('!=', 'notEqual', (a, b) => !loose(a, b)),
    strictEqual: binary('strictEqual', 'strictEqual', Object.is), notStrictEqual: binary('notStrictEqual', 'notStrictEqual', (a, b) => !Object.is(a, b)),
    deepEqual: binary('deepEqual', 'deepEqual', deepLoose), notDeepEqual: binary('notDeepEqual', 'notDeepEqual', (a, b) => !deepLoose(a, b)),
    deepStrictEqual: binary('deepStrictEqual', 'deepStrictEqual', deepStrict), notDeepStrictEqual: binary('notDeepStrictEqual', 'notDeepStrictEqual', (a, b) => !deepStrict(a, b)),
    throws(f, ...rest) { expects(tried(f), 'throws', ...rest); },
    doesNotThrow(f, ...rest) { expectsNot(tried(f), 'doesNotThrow', ...rest); },
    async rejects(promise, ...rest) { expects(await waited(promise), 'rejects', ...rest); },
    async doesNotReject(promise, ...rest) { expectsNot(await waited(promise), 'doesNotReject', ...rest); },
    match: matched('match', true), doesNotMatch: matched('doesNotMatch', false),
    ifError(value) {
      if (value === null || value === undefined) return;
      const text = isObject(value) && typeof value.message === 'string' ? value.message || value.constructor.name : inspect(value);
      fail({ actual: value, expected: null, operator: 'ifError', message: `ifError got unwanted exception: ${text}` }, false);
    },
  };
  const strict = function strict(...args) { truthy(args.length, ...args); };
  Object.assign(assert, functions);
  Object.assign(strict, functions, { equal: assert.strictEqual, deepEqual: assert.deepStrictEqual, notEqual: assert.notStrictEqual, notDeepEqual: assert.notDeepStrictEqual });
  assert.strict = strict.strict = strict;
  return assert;
})
