// `diagnostics_channel`: it has no state of the loop, so it is JavaScript. The error of a subscriber is
// thrown on a tick.
(function (natives, internal) {
  'use strict';
  const { apply, invalidType, needFunction } = internal;
  const then = internal.then;
  const thrown = (error) => process.nextTick(() => { throw error; });
  const channels = new Map();

  class Channel {
    // A list is replaced when it changes: a message that is being published reaches those of before.
    #subscribers = [];
    #stores = new Map();
    constructor(name) { this.name = name; }
    get hasSubscribers() { return this.#subscribers.length > 0 || this.#stores.size > 0; }
    subscribe(subscription) {
      needFunction(subscription, 'subscription');
      this.#subscribers = [...this.#subscribers, subscription];
    }
    unsubscribe(subscription) {
      const place = this.#subscribers.indexOf(subscription);
      if (place === -1) return false;
      this.#subscribers = this.#subscribers.toSpliced(place, 1);
      return true;
    }
    bindStore(store, transform) { this.#stores.set(store, transform); }
    unbindStore(store) { return this.#stores.delete(store); }
    publish(message) {
      for (const subscriber of this.#subscribers) {
        try {
          subscriber(message, this.name);
        } catch (error) {
          thrown(error);
        }
      }
    }
    runStores(message, f, that, ...args) {
      let run = () => {
        this.publish(message);
        return apply(f, that, args);
      };
      for (const [store, transform] of this.#stores) {
        const next = run;
        run = () => {
          let value = message;
          try {
            if (transform) value = transform(message);
          } catch (error) {
            thrown(error);
            return next();
          }
          return store.run(value, next);
        };
      }
      return run();
    }
  }
  const channel = (name) => {
    if (typeof name !== 'string' && typeof name !== 'symbol') throw invalidType('channel', ['string', 'symbol'], name);
    if (!channels.has(name)) channels.set(name, new Channel(name));
    return channels.get(name);
  };

  const stages = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'];
  class TracingChannel {
    constructor(given) {
      for (const stage of stages) {
        const value = typeof given === 'string' ? channel(`tracing:${given}:${stage}`) : given[stage];
        if (!(value instanceof Channel)) throw invalidType(`nameOrChannels.${stage}`, 'Channel', value);
        Object.defineProperty(this, stage, { value });
      }
    }
    get hasSubscribers() { return stages.some((stage) => this[stage].hasSubscribers); }
    subscribe(handlers) {
      for (const stage of stages) if (handlers[stage]) this[stage].subscribe(handlers[stage]);
    }
    unsubscribe(handlers) {
      let isDone = true;
      for (const stage of stages) if (handlers[stage] && !this[stage].unsubscribe(handlers[stage])) isDone = false;
      return isDone;
    }
    #failed(context, error) {
      context.error = error;
      this.error.publish(context);
    }
    #started(context, f) {
      return this.start.runStores(context, () => {
        try {
          return f();
        } catch (error) {
          this.#failed(context, error);
          throw error;
        } finally {
          this.end.publish(context);
        }
      });
    }
    traceSync(f, context = {}, that, ...args) {
      if (!this.hasSubscribers) return apply(f, that, args);
      return this.#started(context, () => (context.result = apply(f, that, args)));
    }
    tracePromise(f, context = {}, that, ...args) {
      if (!this.hasSubscribers) return apply(f, that, args);
      const settled = () => {
        this.asyncStart.publish(context);
        this.asyncEnd.publish(context);
      };
      const resolve = (result) => {
        context.result = result;
        settled();
        return result;
      };
      const reject = (error) => {
        this.#failed(context, error);
        settled();
        throw error;
      };
      return this.#started(context, () => {
        const made = apply(f, that, args);
        return then(made instanceof Promise ? made : Promise.resolve(made), resolve, reject);
      });
    }
    traceCallback(f, position = -1, context = {}, that, ...args) {
      if (!this.hasSubscribers) return apply(f, that, args);
      const callback = args.at(position);
      needFunction(callback, 'callback');
      const trace = this;
      const wrapped = function (...results) {
        const [error, result] = results;
        if (error) trace.#failed(context, error);
        else context.result = result;
        trace.asyncStart.runStores(context, () => {
          try {
            return apply(callback, this, results);
          } finally {
            trace.asyncEnd.publish(context);
          }
        });
      };
      args.splice(position, 1, wrapped);
      return this.#started(context, () => apply(f, that, args));
    }
  }
  return {
    channel, Channel,
    hasSubscribers: (name) => channels.get(name)?.hasSubscribers ?? false,
    subscribe: (name, f) => channel(name).subscribe(f),
    unsubscribe: (name, f) => channel(name).unsubscribe(f),
    tracingChannel: (given) => new TracingChannel(given),
  };
})
