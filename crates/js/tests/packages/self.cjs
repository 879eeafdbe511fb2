exports.self = 'self';
