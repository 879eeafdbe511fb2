'use strict';
// N153: messages to all other channels of a name; environment data; thread ids.
const { log } = require('./_lib');
const worker = require('worker_threads');
const { BroadcastChannel, Worker, getEnvironmentData, setEnvironmentData } = worker;

if (!worker.isMainThread) {
  const news = new BroadcastChannel('news');
  news.onmessage = ({ data }) => { news.postMessage(`echo ${data}`); news.close(); };
  const data = [getEnvironmentData('a'), getEnvironmentData('b'), worker.threadId > 0];
  setEnvironmentData('a', 'changed');
  return news.postMessage('ready ' + data.join(' '));
}
const one = new BroadcastChannel('news');
const two = new BroadcastChannel('news');
const other = new BroadcastChannel('other');
log(`${one.name} ${other.name} ${worker.threadId}`);
one.onmessage = ({ data }) => log('one ' + data);
other.onmessage = ({ data }) => log('other ' + data);
two.onmessage = ({ data }) => {
  log('two ' + data);
  process.nextTick(() => log('tick'));
  if (data === 'second') start();
};
one.postMessage('first');
one.postMessage('second');
log('posted');
function start() {
  setEnvironmentData('a', 'hello');
  setEnvironmentData('b', 7);
  setEnvironmentData('c', 1);
  setEnvironmentData('c', undefined);
  one.close();
  other.close();
  two.onmessage = ({ data }) => {
    log('two ' + data);
    if (data.startsWith('ready')) two.postMessage('go');
    else { two.close(); log(String(getEnvironmentData('a'))); }
  };
  const w = new Worker(__filename);
  log('thread ' + (w.threadId > 0));
  w.on('exit', () => setTimeout(() => log(`exit ${w.threadId} ${getEnvironmentData('c')}`), 100));
}
