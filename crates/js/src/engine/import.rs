//! ES modules: the engine asks for the path of an import, and for its source.

use std::rc::{Rc, Weak};

use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{Ctx, Module};

use super::{Fault, Inner, Res, Scope, Val};

/// Asks the prelude, which knows files, packages and built-in modules.
struct Prelude(Weak<Inner>);

impl Prelude {
    fn ask<'js>(&self, ctx: &Ctx<'js>, name: &str, args: &[&str]) -> rquickjs::Result<Val<'js>> {
        let inner = self.0.upgrade().ok_or(rquickjs::Error::Unknown)?;
        let scope = Scope {
            ctx: ctx.clone(),
            inner,
        };
        let texts = args.iter().map(|text| scope.string(text));
        let asked = texts
            .collect::<Res<'js, Vec<_>>>()
            .and_then(|args| scope.internal(name, &args));
        asked.map_err(|Fault| rquickjs::Error::Exception)
    }
}

/// Returns the attribute `type`, and another one as the text of a list.
fn known(attributes: Option<ImportAttributes<'_>>) -> rquickjs::Result<[String; 2]> {
    let mut found = [(); 2].map(|()| String::new());
    if let Some(attributes) = attributes {
        for key in attributes.keys() {
            let key = key?;
            let value = attributes.get(&key)?.unwrap_or_default();
            match key.as_str() {
                "type" => found[0] = value,
                _ => found[1] = format!("[{key:?},{value:?}]"),
            }
        }
    }
    Ok(found)
}

impl Resolver for Prelude {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<String> {
        let [kind, other] = known(attributes)?;
        let found = self.ask(ctx, "importPath", &[name, base, &kind, &other])?;
        found.to_text().map_err(|Fault| rquickjs::Error::Exception)
    }
}

impl Loader for Prelude {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        let source = self.ask(ctx, "importSource", &[name])?;
        let source = source
            .to_text()
            .map_err(|Fault| rquickjs::Error::Exception)?;
        let module = Module::declare(ctx.clone(), name, source)?;
        // What `import.meta` has: the prelude adds it.
        let meta = self.ask(ctx, "importMeta", &[name])?;
        if let Some(fields) = meta.0.as_object() {
            let target = module.meta()?;
            for key in fields.keys::<String>() {
                let key = key?;
                target.set(key.as_str(), fields.get::<_, rquickjs::Value<'js>>(&key)?)?;
            }
        }
        Ok(module)
    }
}

impl Inner {
    /// Makes the prelude the loader of ES modules.
    pub(super) fn load_modules(self: &Rc<Self>) {
        let [resolver, loader] = [(); 2].map(|()| Prelude(Rc::downgrade(self)));
        self.runtime.set_loader(resolver, loader);
    }
}

impl<'js> Scope<'js> {
    /// Evaluates a module, whose `import.meta.take` is a function, after `check` has seen that all it
    /// imports is loaded; returns the promise of its end.
    pub(crate) fn evaluate(
        &self,
        name: &str,
        source: &str,
        take: &Val<'js>,
        check: &Val<'js>,
    ) -> Res<'js> {
        let module = self.known(Module::declare(self.ctx.clone(), name, source))?;
        let meta = module.meta();
        self.known(meta.and_then(|meta| meta.set("take", take.0.clone())))?;
        check.call(&self.undefined(), &[])?;
        let (_, promise) = self.known(module.eval())?;
        Ok(Val(promise.into_value()))
    }

    /// Imports a module by its path; returns a promise of its namespace.
    pub(crate) fn import(&self, path: &str) -> Res<'js> {
        let promise = self.known(Module::import(&self.ctx, path))?;
        Ok(Val(promise.into_value()))
    }
}
