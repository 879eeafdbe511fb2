'use strict';
// N156: channels: who gets a message, errors of subscribers, stores; stages of calls, promises and callbacks.
const { log } = require('./_lib');
const { channel, tracingChannel } = require('diagnostics_channel');
const { AsyncLocalStorage } = require('async_hooks');

process.on('uncaughtException', (e) => log('uncaught ' + e.message));
const news = channel('news');
log(`${news.hasSubscribers} ${channel('news') === news}`);
news.publish('nobody');
const a = (text, name) => log(`a ${text} ${name}`);
const b = (text) => { log('b ' + text); news.unsubscribe(b); news.subscribe(late); };
const late = (text) => log('late ' + text);
const bad = (text) => { throw new Error('of ' + text); };
news.subscribe(a);
news.subscribe(b);
news.subscribe(bad);
news.subscribe(a);
process.nextTick(() => log('tick'));
news.publish('one');
process.nextTick(() => log('tick 2'));
news.publish('two');
log(`unsubscribed ${news.unsubscribe(a)} ${news.unsubscribe(b)} ${news.unsubscribe(bad)} ${news.unsubscribe(late)}`);
news.unsubscribe(a);
log(`subscribers ${news.hasSubscribers}`);

const [one, two] = [new AsyncLocalStorage(), new AsyncLocalStorage()];
news.bindStore(one, (text) => `<${text}>`);
log(`bound ${news.hasSubscribers}`);
news.bindStore(two, () => { throw new Error('no store'); });
news.subscribe((text) => log(`in ${text} ${one.getStore()} ${two.getStore()}`));
log('returned ' + news.runStores('run', () => {
  log('store ' + one.getStore());
  setTimeout(() => log('later ' + one.getStore()), 100);
  return 42;
}));
log('after ' + one.getStore());
try { news.runStores('throws', () => { throw new Error('thrown'); }); } catch (e) { log(e.message + ' ' + one.getStore()); }
log(`unbound ${news.unbindStore(one)} ${news.unbindStore(one)} ${news.unbindStore(two)}`);

const trace = tracingChannel('work');
log(`traced ${trace.hasSubscribers} ${trace.start.name} ${trace.asyncEnd.name}`);
log('plain ' + trace.traceSync(() => 1, { name: 'plain' }));
const stage = (name) => (c) => log(`${name} ${c.name} ${c.result} ${c.error && c.error.message}`);
const handlers = Object.fromEntries(['start', 'end', 'asyncStart', 'asyncEnd', 'error'].map((name) => [name, stage(name)]));
trace.subscribe(handlers);
trace.start.bindStore(one, (c) => c.name);
const setAfter = (value, callback) => setTimeout(() => callback(value < 0 ? new Error('negative') : null, value), 50);
log('sync ' + trace.traceSync(() => { log('called ' + one.getStore()); return 1; }, { name: 'sync' }));
try { trace.traceSync(() => { throw new Error('no'); }, { name: 'fails' }); } catch (e) { log('caught ' + e.message); }
trace.tracePromise(async () => { await null; return 2; }, { name: 'promise' }).then((n) => log('then ' + n));
trace.tracePromise(() => Promise.reject(new Error('late no')), { name: 'rejects' }).catch((e) => log('caught ' + e.message));
Promise.resolve().then(() => log('m1')).then(() => log('m2')).then(() => log('m3'));
setTimeout(() => {
  log('--');
  trace.traceCallback(setAfter, -1, { name: 'callback' }, null, 3, (e, n) => log(`back ${n} ${one.getStore()}`));
  setTimeout(() => {
    trace.traceCallback(setAfter, -1, { name: 'callback fails' }, null, -1, (e) => { log('back ' + e.message); throw new Error('in the callback'); });
    setTimeout(() => {
      log(`off ${trace.unsubscribe(handlers)} ${trace.unsubscribe(handlers)} ${trace.hasSubscribers} ${trace.start.unbindStore(one)} ${trace.hasSubscribers}`);
    }, 150);
  }, 150);
}, 150);
