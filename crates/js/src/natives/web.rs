//! URLs, forms and `fetch`: with the feature `fetch`.

use std::rc::Rc;

use phaseloop_node::fetch::{Body, Redirect, Response, fetch as node_fetch};
use phaseloop_node::stream::{Transform, pipeline};
use phaseloop_node::{Promise, Reason, host};
use url::{Url, form_urlencoded, quirks};

use super::signals::lent;
use super::stream::{Handle, Reading, bind, handle_of, keep};
use super::{arg, operations, text};
use crate::engine::{Native, Res, Scope, Val};
use crate::error;

pub(super) const TABLE: &[(&str, Native)] = &[
    ("urlParse", parse),
    ("urlSet", set),
    ("formParse", form_parse),
    ("formText", form_text),
    ("fetch", fetch),
];

/// Returns the parts of a URL, whole first; `undefined` for a text that is none. The second argument
/// is what a relative one is relative to.
fn parse<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let (text, base) = (text(scope, args, 0)?, arg(scope, args, 1).as_text());
    let parsed = match base.map(|base| Url::parse(&base)) {
        None => Url::parse(&text),
        Some(Ok(base)) => base.join(&text),
        Some(Err(error)) => Err(error),
    };
    match parsed {
        Ok(url) => parts(scope, &url),
        Err(_) => Ok(scope.undefined()),
    }
}

fn parts<'js>(scope: &Scope<'js>, url: &Url) -> Res<'js> {
    let origin = quirks::origin(url);
    let parts = [
        quirks::href(url),
        &origin,
        quirks::protocol(url),
        quirks::username(url),
        quirks::password(url),
        quirks::host(url),
        quirks::hostname(url),
        quirks::port(url),
        quirks::pathname(url),
        quirks::search(url),
        quirks::hash(url),
    ];
    let parts = parts.map(|part| scope.string(part));
    let parts: Res<'js, Vec<_>> = parts.into_iter().collect();
    scope.array(&parts?)
}

/// Sets a part of a URL: the whole, the name of the part, and its text. A text that does not fit
/// changes nothing. Returns the parts.
fn set<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let Ok(mut url) = Url::parse(&text(scope, args, 0)?) else {
        return Ok(scope.undefined());
    };
    let new = text(scope, args, 2)?;
    let _ = match text(scope, args, 1)?.as_str() {
        "protocol" => quirks::set_protocol(&mut url, &new),
        "username" => quirks::set_username(&mut url, &new),
        "password" => quirks::set_password(&mut url, &new),
        "host" => quirks::set_host(&mut url, &new),
        "hostname" => quirks::set_hostname(&mut url, &new),
        "port" => quirks::set_port(&mut url, &new),
        "pathname" => {
            quirks::set_pathname(&mut url, &new);
            Ok(())
        }
        "search" => {
            quirks::set_search(&mut url, &new);
            Ok(())
        }
        _ => {
            quirks::set_hash(&mut url, &new);
            Ok(())
        }
    };
    parts(scope, &url)
}

/// Returns the names and values of a form, by turns.
fn form_parse<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let text = text(scope, args, 0)?;
    let pairs = form_urlencoded::parse(text.as_bytes());
    let texts = pairs.flat_map(|(name, value)| [name, value]);
    let texts: Res<'js, Vec<_>> = texts.map(|it| scope.string(&it)).collect();
    scope.array(&texts?)
}

/// Returns the pairs of a list of names and values.
fn pairs<'js>(list: &Val<'js>) -> Res<'js, Vec<(String, String)>> {
    let texts: Vec<String> = list
        .elements()?
        .iter()
        .map(Val::to_text)
        .collect::<Res<'js, _>>()?;
    let pairs = texts.chunks_exact(2);
    Ok(pairs
        .map(|pair| (pair[0].clone(), pair[1].clone()))
        .collect())
}

fn form_text<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let pairs = pairs(&arg(scope, args, 0))?;
    let mut form = form_urlencoded::Serializer::new(String::new());
    scope.string(&form.extend_pairs(pairs).finish())
}

/// Calls the callback of JavaScript where a promise is settled.
fn settle<'s, T: Clone + 'static>(
    scope: &Scope<'s>,
    callback: &Val<'s>,
    promise: &Promise<T>,
    value: impl for<'js> FnOnce(&Scope<'js>, T) -> Res<'js> + 'static,
) {
    let callback = scope.hold(callback);
    host::on_settled(promise, move |result: Result<T, Reason>| {
        callback.call(|scope| match result {
            Ok(found) => Ok(vec![scope.null(), value(scope, found)?]),
            Err(reason) => Ok(vec![error::to_value(scope, &reason)?]),
        });
    });
}

/// Returns the body of a request: a text, bytes, a list of the fields of a form, or a stream.
fn body<'js>(scope: &Scope<'js>, value: &Val<'js>) -> Res<'js, Option<Body>> {
    if value.is_nullish() {
        return Ok(None);
    }
    if let Some(text) = value.as_text() {
        return Ok(Some(text.into()));
    }
    if value.is_array() {
        return Ok(Some(Body::form(pairs(value)?)));
    }
    if let Some(bytes) = value.to_bytes() {
        return Ok(Some(bytes.into()));
    }
    Ok(match handle_of(scope, value)?.and_then(|it| it.read) {
        Some(Reading::Bytes(stream)) => Some(Body::from(&stream)),
        Some(Reading::Js(stream)) => {
            let through =
                Transform::<Vec<u8>, Vec<u8>>::bytes(|chunk, out| out.ok_with(chunk)).build();
            let end = host::into_sink(pipeline(&stream), through.writable(), true);
            // The body has the error, too.
            end.then(|_| ());
            Some(Body::from(through.readable()))
        }
        None => None,
    })
}

/// Starts a request: the URL, the callback, and the options.
fn fetch<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let given = arg(scope, args, 2);
    let mut request = node_fetch(text(scope, args, 0)?);
    if let Some(method) = given.get(scope, "method")?.as_text() {
        request = request.method(method);
    }
    request = request.headers(pairs(&given.get(scope, "headers")?)?);
    request = request.redirect(match given.get(scope, "redirect")?.as_text().as_deref() {
        Some("manual") => Redirect::Manual,
        Some("error") => Redirect::Error,
        _ => Redirect::Follow,
    });
    if let Some(signal) = lent(scope, &given.get(scope, "controller")?)? {
        request = request.signal(&signal);
    }
    if let Some(body) = body(scope, &given.get(scope, "body")?)? {
        request = request.body(body);
    }
    settle(scope, &arg(scope, args, 1), &request.send(), response);
    Ok(scope.undefined())
}

/// Returns the function of a response.
fn response<'js>(scope: &Scope<'js>, it: Response) -> Res<'js> {
    let it = Rc::new(it);
    operations(scope, "response", move |scope, operation, args| {
        operate(scope, &it, operation, args)
    })
}

fn operate<'js>(scope: &Scope<'js>, it: &Response, operation: &str, args: &[Val<'js>]) -> Res<'js> {
    let callback = arg(scope, args, 0);
    match operation {
        "head" => {
            let headers = it.headers().iter();
            let headers = headers.flat_map(|(name, value)| [name, value]);
            let headers: Res<'js, Vec<_>> = headers.map(|it| scope.string(&it)).collect();
            return scope.array(&[
                scope.number(f64::from(it.status())),
                scope.string(it.status_text())?,
                scope.string(it.url())?,
                scope.boolean(it.redirected()),
                scope.array(&headers?)?,
            ]);
        }
        "text" => settle(scope, &callback, &it.text(), |scope, it| scope.string(&it)),
        "bytes" => settle(scope, &callback, &it.bytes(), |scope, it| scope.bytes(&it)),
        "used" => return Ok(scope.boolean(it.body_used())),
        "has" => return Ok(scope.boolean(it.body().is_some())),
        "body" => {
            if let Some(stream) = it.body() {
                use phaseloop_node::events::Emitter as _;
                keep(scope, &callback, stream.emitter(), stream.id());
                return bind(scope, &callback, Handle::of_bytes(Some(&stream), None));
            }
        }
        "clone" => {
            return match it.clone_body() {
                Ok(copy) => response(scope, copy),
                Err(error) => Err(scope.throw_reason(&error.into())),
            };
        }
        _ => {}
    }
    Ok(scope.undefined())
}
