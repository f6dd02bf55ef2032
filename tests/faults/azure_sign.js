// SPDX-License-Identifier: MIT
//
// SharedKey of Azure's queue service, for those who stand between or beside the
// clients under test: the fault server checks signatures and signs anew what it
// has changed; the bench signs its own requests.
'use strict';
const crypto = require('crypto');

// The emulator's published account.
const DEV = {
	name: 'devstoreaccount1',
	key: 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/' +
		'K1SZFPTOtr/KBHBeksoGMGw==',
};

// [[name, value]...] of a query as it is on the wire. A '+' there is a space, so
// a receipt that was not encoded is a wrong one, as it is to the service.
function parseQuery(text) {
	return text.split('&').filter(Boolean).map((pair) => {
		const at = (pair + '=').indexOf('=');
		const decode = (s) => decodeURIComponent(s.replace(/\+/g, ' '));
		return [decode(pair.slice(0, at)), decode(pair.slice(at + 1))];
	});
}

const formatQuery = (query) =>
	query.map(([k, v]) => `${k}=${encodeURIComponent(v)}`).join('&');

const SIGNED = ['content-encoding', 'content-language', 'content-length', 'content-md5',
	'content-type', 'date', 'if-modified-since', 'if-match', 'if-none-match',
	'if-unmodified-since', 'range'];

function stringToSign(account, method, path, query, headers) {
	const lines = SIGNED.map((name) => {
		const value = headers[name] || '';
		if (name === 'content-length' && value === '0') return '';
		return name === 'date' && headers['x-ms-date'] ? '' : value;
	});
	const ours = Object.keys(headers).filter((h) => h.startsWith('x-ms-')).sort()
		.map((h) => `${h}:${String(headers[h]).trim()}`);
	const params = query.map(([k, v]) => [k.toLowerCase(), v]).sort()
		.map(([k, v]) => `${k}:${v}`);
	return [method, ...lines, ...ours, `/${account.name}${path}`, ...params].join('\n');
}

// The whole value of Authorization. HEADERS have lower-case names.
function sharedKey(account, method, path, query, headers) {
	const mac = crypto.createHmac('sha256', Buffer.from(account.key, 'base64'));
	mac.update(stringToSign(account, method, path, query, headers), 'utf8');
	return `SharedKey ${account.name}:${mac.digest('base64')}`;
}

module.exports = { DEV, parseQuery, formatQuery, sharedKey };
