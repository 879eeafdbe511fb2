//! What the parser refuses, with Node's codes.

/// Why a message was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) enum Fault {
    InvalidMethod,
    InvalidUrl,
    InvalidConstant,
    InvalidVersion,
    InvalidStatus,
    UnexpectedSpace,
    InvalidHeaderToken,
    CrExpected,
    LfExpected,
    Strict,
    InvalidContentLength,
    UnexpectedContentLength,
    InvalidTransferEncoding,
    ContentLengthOverflow,
    EmptyContentLength,
    /// The body of a request whose last coding is not `chunked` has no end.
    UnknownCoding,
    EmptyTransferEncoding,
    /// A transfer coding behind a length.
    CodingWithLength,
    /// A length behind a transfer coding.
    LengthWithCoding,
    InvalidChunkSize,
    ClosedConnection,
    PausedH2Upgrade,
    InvalidEofState,
    HeaderOverflow,
    ChunkExtensionsOverflow,
    /// The program has panicked when it was called with a head.
    HeadHandler,
    /// The program has panicked when it was called with a piece of a body.
    BodyHandler,
}

impl Fault {
    /// Returns Node's code.
    pub(in crate::http) fn code(self) -> &'static str {
        self.texts().0
    }

    /// Returns the text of the error.
    pub(in crate::http) fn message(self) -> String {
        format!("Parse Error: {}", self.texts().1)
    }

    fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::InvalidMethod => ("HPE_INVALID_METHOD", "Invalid method"),
            Self::InvalidUrl => ("HPE_INVALID_URL", "Invalid URL"),
            Self::InvalidConstant => ("HPE_INVALID_CONSTANT", "Expected HTTP/, RTSP/ or ICE/"),
            Self::InvalidVersion => ("HPE_INVALID_VERSION", "Invalid HTTP version"),
            Self::InvalidStatus => ("HPE_INVALID_STATUS", "Invalid status"),
            Self::UnexpectedSpace => ("HPE_UNEXPECTED_SPACE", "Unexpected space after first line"),
            Self::InvalidHeaderToken => ("HPE_INVALID_HEADER_TOKEN", "Invalid header line"),
            Self::CrExpected => ("HPE_CR_EXPECTED", "Missing expected CR"),
            Self::LfExpected => ("HPE_LF_EXPECTED", "Missing expected LF after header value"),
            Self::Strict => ("HPE_STRICT", "Unexpected byte"),
            Self::InvalidContentLength => (
                "HPE_INVALID_CONTENT_LENGTH",
                "Invalid character in Content-Length",
            ),
            Self::UnexpectedContentLength => {
                ("HPE_UNEXPECTED_CONTENT_LENGTH", "Duplicate Content-Length")
            }
            Self::InvalidTransferEncoding => (
                "HPE_INVALID_TRANSFER_ENCODING",
                "Invalid `Transfer-Encoding` header value",
            ),
            Self::UnknownCoding => (
                "HPE_INVALID_TRANSFER_ENCODING",
                "Request has invalid `Transfer-Encoding`",
            ),
            Self::ContentLengthOverflow => {
                ("HPE_INVALID_CONTENT_LENGTH", "Content-Length overflow")
            }
            Self::EmptyContentLength => ("HPE_INVALID_CONTENT_LENGTH", "Empty Content-Length"),
            Self::EmptyTransferEncoding => {
                ("HPE_INVALID_TRANSFER_ENCODING", "Empty Transfer-Encoding")
            }
            Self::CodingWithLength => (
                "HPE_INVALID_TRANSFER_ENCODING",
                "Transfer-Encoding can't be present with Content-Length",
            ),
            Self::LengthWithCoding => (
                "HPE_INVALID_CONTENT_LENGTH",
                "Content-Length can't be present with Transfer-Encoding",
            ),
            Self::InvalidChunkSize => ("HPE_INVALID_CHUNK_SIZE", "Invalid chunk size"),
            Self::ClosedConnection => ("HPE_CLOSED_CONNECTION", "Data after `Connection: close`"),
            Self::PausedH2Upgrade => ("HPE_PAUSED_H2_UPGRADE", "HTTP/2 connection preface"),
            Self::InvalidEofState => ("HPE_INVALID_EOF_STATE", "Invalid EOF state"),
            Self::HeaderOverflow => ("HPE_HEADER_OVERFLOW", "Header overflow"),
            Self::HeadHandler => ("HPE_CB_HEADERS_COMPLETE", "The handler has failed"),
            Self::BodyHandler => ("HPE_USER", "The handler has failed"),
            Self::ChunkExtensionsOverflow => {
                ("HPE_CHUNK_EXTENSIONS_OVERFLOW", "Chunk extensions overflow")
            }
        }
    }
}
