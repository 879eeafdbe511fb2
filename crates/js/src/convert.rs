//! Values of Rust as values of JavaScript, and back.

use std::fmt;

use phaseloop_node::{Promise, host};

use crate::api::Value;
use crate::engine::{Held, Res, Scope, Val};
use crate::error::Error;

/// A type of Rust that a value of JavaScript converts into.
pub trait FromJs: Sized {
    /// Converts a value.
    ///
    /// # Errors
    ///
    /// A `TypeError`, if the value is of another type.
    fn from_js(value: &Value) -> Result<Self, Error>;
}

/// A type of Rust that converts into a value of JavaScript.
pub trait ToJs {
    /// Returns the plain form of the value.
    fn to_js(self) -> Plain;
}

/// A value between the two languages.
#[doc(hidden)]
#[derive(Debug)]
#[allow(
    missing_docs,
    unnameable_types,
    reason = "a part of the trait that users do not implement"
)]
pub enum Plain {
    Undefined,
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    Bytes(Vec<u8>),
    List(Vec<Self>),
    Map(Vec<(String, Self)>),
    Value(Value),
    Later(Later),
}

/// What settles a promise of JavaScript by its two functions.
#[doc(hidden)]
#[allow(
    unnameable_types,
    reason = "a part of the trait that users do not implement"
)]
pub struct Later(Box<dyn FnOnce(Held, Held)>);

impl fmt::Debug for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Later").finish()
    }
}

impl Plain {
    /// Returns a promise of JavaScript that is settled inside of what settles that of Rust.
    pub(crate) fn promise<T: Clone + 'static>(
        promise: Promise<T>,
        convert: impl FnOnce(T) -> Self + 'static,
    ) -> Self {
        Self::Later(Later(Box::new(move |resolve, reject| {
            host::on_settled(&promise, move |result| match result {
                Ok(value) => resolve.call(|scope| Ok(vec![convert(value).make(scope)?])),
                Err(reason) => {
                    reject.call(|scope| Ok(vec![crate::error::to_value(scope, &reason)?]))
                }
            });
        })))
    }

    pub(crate) fn make<'js>(self, scope: &Scope<'js>) -> Res<'js> {
        match self {
            Self::Undefined => Ok(scope.undefined()),
            Self::Null => Ok(scope.null()),
            Self::Bool(value) => Ok(scope.boolean(value)),
            Self::Number(value) => Ok(scope.number(value)),
            Self::Text(text) => scope.string(&text),
            Self::Bytes(bytes) => scope.bytes(&bytes),
            Self::List(list) => {
                let list: Res<'js, Vec<_>> = list.into_iter().map(|it| it.make(scope)).collect();
                scope.array(&list?)
            }
            Self::Map(map) => {
                let object = scope.object()?;
                for (key, value) in map {
                    object.set(&key, &value.make(scope)?)?;
                }
                Ok(object)
            }
            Self::Value(value) => value.held().get(scope),
            Self::Later(Later(start)) => {
                let (promise, resolve, reject) = scope.promise()?;
                start(scope.hold(&resolve), scope.hold(&reject));
                Ok(promise)
            }
        }
    }
}

fn mismatch(wanted: &str, value: &Val<'_>) -> Error {
    Error::new(
        "TypeError",
        &format!("a {wanted} is expected, not {}", value.type_name()),
    )
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl FromJs for $number {
            fn from_js(value: &Value) -> Result<Self, Error> {
                value.with(|_, value| {
                    let number = value.as_number().ok_or_else(|| mismatch("number", value))?;
                    Ok(number as $number)
                })
            }
        }

        impl ToJs for $number {
            fn to_js(self) -> Plain {
                Plain::Number(self as f64)
            }
        }
    )*};
}

numbers!(f64 f32 i32 u32 i64 u64 usize);

impl FromJs for bool {
    fn from_js(value: &Value) -> Result<Self, Error> {
        value.with(|_, value| value.as_bool().ok_or_else(|| mismatch("boolean", value)))
    }
}

impl FromJs for String {
    fn from_js(value: &Value) -> Result<Self, Error> {
        value.with(|_, value| value.as_text().ok_or_else(|| mismatch("string", value)))
    }
}

impl FromJs for Vec<u8> {
    fn from_js(value: &Value) -> Result<Self, Error> {
        value.with(|_, value| {
            value
                .to_bytes()
                .ok_or_else(|| mismatch("typed array", value))
        })
    }
}

impl FromJs for Value {
    fn from_js(value: &Value) -> Result<Self, Error> {
        Ok(value.clone())
    }
}

impl<T: FromJs> FromJs for Option<T> {
    fn from_js(value: &Value) -> Result<Self, Error> {
        let is_nullish = value.with(|_, value| Ok(value.is_nullish()))?;
        (!is_nullish).then(|| T::from_js(value)).transpose()
    }
}

impl FromJs for Vec<Value> {
    fn from_js(value: &Value) -> Result<Self, Error> {
        value.with(|scope, value| {
            if !value.is_array() {
                return Err(mismatch("array", value));
            }
            let elements = value.elements().map_err(|_| scope.take_error())?;
            Ok(elements
                .iter()
                .map(|it| Value::new(scope.hold(it)))
                .collect())
        })
    }
}

impl ToJs for () {
    fn to_js(self) -> Plain {
        Plain::Undefined
    }
}

impl ToJs for bool {
    fn to_js(self) -> Plain {
        Plain::Bool(self)
    }
}

impl ToJs for &str {
    fn to_js(self) -> Plain {
        Plain::Text(self.to_owned())
    }
}

impl ToJs for String {
    fn to_js(self) -> Plain {
        Plain::Text(self)
    }
}

impl ToJs for &[u8] {
    fn to_js(self) -> Plain {
        Plain::Bytes(self.to_vec())
    }
}

impl ToJs for Value {
    fn to_js(self) -> Plain {
        Plain::Value(self)
    }
}

/// JavaScript gets a promise that is settled with this one, without a tick in between.
impl<T: ToJs + Clone + 'static> ToJs for Promise<T> {
    fn to_js(self) -> Plain {
        Plain::promise(self, T::to_js)
    }
}

impl<T: ToJs> ToJs for Option<T> {
    fn to_js(self) -> Plain {
        self.map_or(Plain::Null, T::to_js)
    }
}

impl<T: ToJs> ToJs for Vec<T> {
    fn to_js(self) -> Plain {
        Plain::List(self.into_iter().map(T::to_js).collect())
    }
}

impl<K: Into<String>, V: ToJs> ToJs for std::collections::BTreeMap<K, V> {
    fn to_js(self) -> Plain {
        let pairs = self.into_iter();
        Plain::Map(
            pairs
                .map(|(key, value)| (key.into(), value.to_js()))
                .collect(),
        )
    }
}

/// The arguments of a function of Rust that JavaScript calls.
#[derive(Debug)]
pub struct Args(Vec<Value>);

impl Args {
    pub(crate) fn new(held: Vec<Held>) -> Self {
        Self(held.into_iter().map(Value::new).collect())
    }

    /// The number of arguments.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The argument at `index`.
    ///
    /// # Errors
    ///
    /// A `TypeError`, if it is missing or of another type.
    pub fn get<T: FromJs>(&self, index: usize) -> Result<T, Error> {
        match self.0.get(index) {
            Some(value) => T::from_js(value),
            None => {
                let text = format!("the argument {index} is missing");
                Err(Error::new("TypeError", &text))
            }
        }
    }
}
