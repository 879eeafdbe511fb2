const [fs, os, path] = [require('fs'), require('os'), require('path')];
const root = fs.mkdtempSync(path.join(os.tmpdir(), 'files-'));
const at = (name) => path.join(root, name);
const said = (text) => `${text}`.replaceAll(root, '.');
const show = (f) => { try { console.log(f()); } catch (error) { console.log(error.name, error.code, said(error.message), error.syscall, said(error.path)); } };
for (const name of ['a/one.js', 'a/two.txt', 'a/deep/three.js']) {
  fs.mkdirSync(path.dirname(at(name)), { recursive: true });
  fs.writeFileSync(at(name), name);
}
show(() => fs.accessSync(at('a/one.js')));
show(() => fs.accessSync(at('a/one.js'), fs.constants.R_OK | fs.constants.W_OK));
show(() => fs.accessSync(at('a/one.js'), fs.constants.X_OK));
show(() => fs.accessSync(at('none')));
show(() => fs.accessSync(5));
show(() => fs.cpSync(at('a/one.js'), at('copy.js')));
show(() => fs.readFileSync(at('copy.js'), 'utf8'));
try { fs.cpSync(at('a'), at('b')); } catch (error) { console.log(error.code); }
show(() => fs.cpSync(at('a'), at('b'), { recursive: true, filter: (from) => !from.endsWith('.txt') }));
show(() => fs.readdirSync(at('b'), { recursive: true }).sort());
show(() => fs.cpSync(at('a'), at('c'), { recursive: true, filter: () => { throw new RangeError('of the filter'); } }));
show(() => fs.existsSync(at('c')));
show(() => fs.globSync('**/*.js', { cwd: root }).sort());
show(() => fs.globSync(['a/**', '*.js'], { cwd: root, exclude: (name) => path.basename(name) === 'deep' }).sort());
show(() => fs.globSync('**', { cwd: root, exclude: () => { throw new RangeError('of the function'); } }));
show(() => fs.globSync(5));
fs.rmSync(root, { recursive: true });
setTimeout(() => console.log('end'), 1);
