//! A Node program and its port: a key-value store behind a TCP port, a client, a file, timers and
//! events. Each piece of JavaScript is above its port; both programs print the same lines.
//!
//! ```text
//! cargo run --release --package phaseloop-node --example port
//! ```
//!
//! The differences: closures own clones of the objects that JavaScript shares, events are typed
//! constants, and errors are values.

fn main() -> phaseloop_node::Exit<()> {
    program::main()
}

mod program {
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeMap;
    use std::net::SocketAddr;
    use std::rc::Rc;

    use phaseloop_node::events::{self, Event, EventEmitter};
    use phaseloop_node::net::{self, CONNECT, Socket};
    use phaseloop_node::stream::{CLOSE, Readable};
    use phaseloop_node::{AbortSignal, Emitter, Error, Exit, fs, process, run, set_timeout};

    // class Store extends EventEmitter {
    //   values = new Map();
    //   answer(line) {
    //     const [verb, key, value] = line.split(' ');
    //     if (verb === 'get') return this.values.get(key) ?? 'nothing';
    //     if (verb === 'wait') return null;
    //     this.values.set(key, value);
    //     this.emit('change', key);
    //     return 'ok';
    //   }
    // }
    const CHANGE: Event<str> = Event::new("change");
    const SAVED: Event<()> = Event::new("saved");

    #[derive(Clone, Default)]
    struct Store {
        emitter: EventEmitter,
        values: Rc<RefCell<BTreeMap<String, String>>>,
    }

    impl Emitter for Store {
        fn emitter(&self) -> &EventEmitter {
            &self.emitter
        }
    }

    phaseloop_node::weak_this!(Store { emitter; values });

    impl Store {
        fn answer(&self, line: &str) -> Option<String> {
            let mut words = line.split(' ');
            let [verb, key, value] = [(); 3].map(|()| words.next().unwrap_or_default());
            match verb {
                "get" => {
                    let found = self.values.borrow().get(key).cloned();
                    Some(found.unwrap_or_else(|| "nothing".to_owned()))
                }
                "wait" => None,
                _ => {
                    let mut values = self.values.borrow_mut();
                    values.insert(key.to_owned(), value.to_owned());
                    // The listeners borrow the values, so the borrow ends here.
                    drop(values);
                    self.emit(CHANGE, key);
                    Some("ok".to_owned())
                }
            }
        }

        fn lines(&self) -> String {
            let values = self.values.borrow();
            let lines: Vec<_> = values
                .iter()
                .map(|(key, value)| format!("{key} {value}"))
                .collect();
            lines.join("\n")
        }
    }

    // let isPending = false;
    // store.on('change', (key) => {
    //   console.log('changed', key);
    //   if (isPending) return;
    //   isPending = true;
    //   setTimeout(() => {
    //     isPending = false;
    //     const lines = [...store.values].map((entry) => entry.join(' ')).join('\n');
    //     fs.writeFile(file, lines, (err) => store.emit('saved', err));
    //   }, 10);
    // });
    fn save_changes(store: &Store, file: std::path::PathBuf) {
        let is_pending = Rc::new(Cell::new(false));
        store.on_this(CHANGE, move |store, key| {
            println!("changed {key}");
            if is_pending.replace(true) {
                return;
            }
            let (store, file, is_pending) = (store.clone(), file.clone(), is_pending.clone());
            set_timeout(10, move || {
                is_pending.set(false);
                fs::write_file(&file, store.lines(), move |result| {
                    result.expect("the directory for temporary files can be written");
                    store.emit(SAVED, ());
                });
            });
        });
    }

    // const server = net.createServer((socket) => {
    //   let rest = '';
    //   socket.on('data', (data) => {
    //     rest += data;
    //     const lines = rest.split('\n');
    //     rest = lines.pop();
    //     for (const line of lines) {
    //       const answer = store.answer(line);
    //       if (answer !== null) socket.write(answer + '\n');
    //     }
    //   });
    // });
    fn create_server(store: Store) -> net::Server {
        net::create_server(move |socket| {
            let (store, rest) = (store.clone(), RefCell::new(String::new()));
            socket.on_data_this(move |socket, data| {
                let mut rest = rest.borrow_mut();
                rest.push_str(&String::from_utf8_lossy(data));
                while let Some((line, left)) = rest.split_once('\n') {
                    if let Some(answer) = store.answer(line) {
                        socket.write(format!("{answer}\n"));
                    }
                    *rest = left.to_owned();
                }
            });
        })
    }

    // async function ask(socket, question, signal) {
    //   socket.write(question + '\n');
    //   const [data] = await once(socket, 'data', { signal });
    //   return String(data).trim();
    // }
    async fn ask(socket: &Socket, question: &str) -> Result<String, Error> {
        socket.write(format!("{question}\n"));
        let data = events::once(socket, Readable::<Vec<u8>>::DATA).await?;
        Ok(String::from_utf8_lossy(&data).trim().to_owned())
    }

    // async function client(port) {
    //   const socket = net.connect(port, '127.0.0.1');
    //   await once(socket, 'connect');
    //   console.log('set:', await ask(socket, 'set color blue'));
    //   console.log('get:', await ask(socket, 'get color'));
    //   console.log('get:', await ask(socket, 'get size'));
    //   try {
    //     await ask(socket, 'wait', AbortSignal.timeout(50));
    //   } catch (error) {
    //     console.log('wait:', error.name);
    //   }
    //   socket.destroy();
    // }
    async fn client(address: SocketAddr) -> Result<(), Error> {
        let socket = net::connect(address);
        events::once(&socket, CONNECT).await?;
        println!("set: {}", ask(&socket, "set color blue").await?);
        println!("get: {}", ask(&socket, "get color").await?);
        println!("get: {}", ask(&socket, "get size").await?);
        // A signal can abort any future.
        let answer = AbortSignal::timeout(50).guard(ask(&socket, "wait"));
        if let Err(error) = answer.await {
            println!("wait: {}", error.name());
        }
        socket.destroy(None);
        Ok(())
    }

    // process.on('exit', (code) => console.log('exit', code));
    // server.on('close', () => console.log('server closed'));
    // server.listen(0, '127.0.0.1', async () => {
    //   const saved = once(store, 'saved');
    //   await client(server.address().port);
    //   await saved;
    //   console.log('saved:', fs.readFileSync(file, 'utf8'));
    //   fs.unlink(file, () => server.close());
    // });
    pub(crate) fn main() -> Exit<()> {
        let file = std::env::temp_dir().join(format!("kv-{}", std::process::id()));
        run(async move {
            let store = Store::default();
            save_changes(&store, file.clone());
            let server = create_server(store.clone());
            process::on_exit(|code| println!("exit {code}"));
            server.on(CLOSE, |()| println!("server closed"));
            let listening = events::once(&server, net::LISTENING);
            server.listen(("127.0.0.1", 0));
            listening.await.expect("there is a free port");

            let saved = events::once(&store, SAVED);
            let address = server.address().expect("it listens");
            client(address).await.expect("the server answers");
            saved.await.expect("a store emits no errors");
            println!(
                "saved: {}",
                std::fs::read_to_string(&file).expect("it was written")
            );
            fs::unlink(&file, move |_| server.close());
        })
    }
}
