#!/usr/bin/env node
// SPDX-License-Identifier: MIT
//
// azure_faults.js UPSTREAM [PORT]: stands between a client and Azurite's queue
// service at UPSTREAM (http://127.0.0.1:10001), on loopback, and fails as a plan
// says. Prints "listening PORT". It keeps to what the real service was recorded
// to do, and checks every signature itself, as strictly.
//
//   GET /_faults        {"requests":{OP:N},"faults":{FAULT:N},"status":{CODE:N},
//                        "connections":N}
//   PUT /_faults        a new plan; counts begin anew
//
// A plan:
//   seed       of the random numbers (1)
//   real       true: byte order mark, <QueueMessagesList />, and pop receipts
//              with + / = that all messages of one answer share
//   stale      how a receipt that is not the newest is refused: "mismatch" (as the
//              emulator does), "404", "400", or "mixed"
//   skew_s     our clock is so far ahead: in Date, and x-ms-date must match it
//   rules      [{fault, on, p, times, ...}]: the first rule that is for this
//              operation (on: one or a list of the OPs; all), has times left (no
//              end) and is drawn with probability p (1), makes its fault:
//     busy timeout internal throttled denied deleting
//                    503 ServerBusy, 500 OperationTimedOut, 500 InternalError,
//                    429, 403, 409 QueueBeingDeleted. retry_after: seconds;
//                    retry_date: the same as a date; applied: carried out all the
//                    same; for_s: ends so long after the first
//     reset          connection reset before anything was done
//     lost           reset after it was done: the reply is lost
//     cut            half a reply, then the connection ends
//     long           Content-Length promises 10 bytes more than come
//     short          Content-Length promises 10 bytes less than come
//     endless        a body of spaces that never ends, one each ms (50)
//     flood          the same as fast as it can
//     trickle        the true reply, but a byte each ms (50)
//     garbage        done, but the body is no XML; bomb: XML that grows on parsing
//     silent         no answer at all, ever
//     delay          ms: waits so long, then goes on to the rules after it
'use strict';
const crypto = require('crypto');
const http = require('http');
const { DEV, parseQuery, formatQuery, sharedKey } = require('./azure_sign.js');

const upstream = new URL(process.argv[2]);
const BOM = '\ufeff';
const agent = new http.Agent({ keepAlive: true, maxSockets: 64 });

let plan, counts, draw;
const receipts = new Map(); // message id -> [[shown, true], ...], the newest first

function setPlan(next) {
	plan = { seed: 1, stale: 'mismatch', skew_s: 0, rules: [], ...next };
	for (const rule of plan.rules) rule.on = rule.on && [].concat(rule.on);
	counts = { requests: {}, faults: {}, status: {}, connections: 0 };
	draw = random(plan.seed);
}

// mulberry32: the same seed draws the same numbers.
function random(seed) {
	let a = seed >>> 0;
	return () => {
		a = (a + 0x6d2b79f5) >>> 0;
		let t = Math.imul(a ^ (a >>> 15), a | 1);
		t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
		return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
	};
}

const count = (what, key) => { counts[what][key] = (counts[what][key] || 0) + 1; };
const now = () => Date.now() + plan.skew_s * 1000;

// ---- what is asked -----------------------------------------------------------

function operation(req) {
	const parts = req.path.split('/').slice(2).filter(Boolean);
	const asked = (name) => req.query.some(([k]) => k.toLowerCase() === name);
	if (parts.length === 0) return 'list';
	if (parts.length === 1) {
		if (asked('comp')) return 'properties';
		return { PUT: 'create', DELETE: 'remove' }[req.method] || 'other';
	}
	if (parts.length === 2) {
		if (req.method === 'GET') return asked('peekonly') ? 'peek' : 'get';
		return { POST: 'put', DELETE: 'clear' }[req.method] || 'other';
	}
	return { PUT: 'update', DELETE: 'delete' }[req.method] || 'other';
}

const messageId = (req) => decodeURIComponent(req.path.split('/').pop());

function signatureIsGood(req) {
	const theirs = req.headers.authorization || '';
	return !theirs.startsWith('SharedKey ') ||
		theirs === sharedKey(DEV, req.method, req.path, req.query, req.headers);
}

function clockIsGood(req) {
	const date = req.headers['x-ms-date'] || req.headers.date;
	return !date || Math.abs(Date.parse(date) - now()) <= 15 * 60 * 1000;
}

// ---- receipts ----------------------------------------------------------------

// As the real ones look: base64 with every character that a URL changes.
function newReceipt() {
	for (;;) {
		const tail = crypto.randomBytes(8).toString('base64');
		if (/\+/.test(tail) && /\//.test(tail)) return 'AgAAAAMAAAAAAAAA' + tail;
	}
}

function showReceipt(id, shown, truth) {
	const known = receipts.get(id) || [];
	known.unshift([shown, truth]);
	receipts.set(id, known.slice(0, 8));
}

// Puts the true receipt into the request; false: nobody was given this one.
function trueReceipt(req) {
	const param = req.query.find(([k]) => k === 'popreceipt');
	if (!plan.real || !param) return true;
	const known = (receipts.get(messageId(req)) || []).find(([s]) => s === param[1]);
	if (!known) return false;
	param[1] = known[1];
	return true;
}

function realBody(op, body) {
	let text = body.toString();
	if (text === '') return body;
	const shared = newReceipt();
	text = text.replace(/^<\?xml[^>]*\?>/, '<?xml version="1.0" encoding="utf-8"?>')
		.replace(/<(QueueMessagesList|MessageText|NextMarker)\/>/g, '<$1 />')
		.replace(/<QueueMessage>.*?<\/QueueMessage>/gs, (message) => {
			const id = /<MessageId>(.*?)<\//.exec(message)[1];
			return message.replace(/<PopReceipt>(.*?)<\//, (_, truth) => {
				showReceipt(id, shared, truth);
				return `<PopReceipt>${shared}</`;
			});
		});
	return Buffer.from(BOM + text);
}

// ---- answers -----------------------------------------------------------------

const TEXTS = {
	busy: [503, 'ServerBusy', 'The server is busy.'],
	timeout: [500, 'OperationTimedOut', 'It was not completed within its time.'],
	internal: [500, 'InternalError', 'Something went wrong inside.'],
	throttled: [429, 'TooManyRequests', 'Too many requests.'],
	denied: [403, 'AuthenticationFailed', 'Authentication has failed.'],
	deleting: [409, 'QueueBeingDeleted', 'The queue is being deleted.'],
	gone: [404, 'MessageNotFound', 'There is no such message.'],
	badReceipt: [400, 'InvalidQueryParameterValue', 'A query parameter is invalid.'],
};

function errorAnswer(kind, detail, headers) {
	const [status, code, text] = TEXTS[kind];
	const body = `<?xml version="1.0" encoding="utf-8"?><Error><Code>${code}</Code>` +
		`<Message>${text}\nTime:${new Date(now()).toISOString()}</Message>${detail}</Error>`;
	return {
		status,
		headers: { 'content-type': 'application/xml', 'x-ms-error-code': code, ...headers },
		body: Buffer.from((plan.real ? BOM : '') + body),
	};
}

function retryAfter(rule) {
	if (rule.retry_date !== undefined)
		return { 'retry-after': new Date(now() + rule.retry_date * 1000).toUTCString() };
	return rule.retry_after === undefined ? {} : { 'retry-after': String(rule.retry_after) };
}

function staleAnswer() {
	const how = plan.stale === 'mixed' ? ['404', '400'][draw() < 0.5 ? 0 : 1] : plan.stale;
	return how === '404' ? errorAnswer('gone', '') :
		errorAnswer('badReceipt', '<QueryParameterName>popreceipt</QueryParameterName>');
}

// Asks Azurite; ANSWER is null when it is not there.
function forward(req) {
	const query = formatQuery(req.query);
	const headers = { ...req.headers, host: upstream.host, connection: 'keep-alive' };
	if ((headers.authorization || '').startsWith('SharedKey '))
		headers.authorization = sharedKey(DEV, req.method, req.path, req.query, headers);
	return new Promise((resolve) => {
		const out = http.request({
			agent, headers, method: req.method, hostname: upstream.hostname,
			port: upstream.port, path: req.path + (query && '?' + query),
		}, (res) => {
			const chunks = [];
			res.on('data', (c) => chunks.push(c));
			res.on('error', () => resolve(null));
			res.on('end', () => resolve({
				status: res.statusCode, headers: res.headers, body: Buffer.concat(chunks),
			}));
		});
		// Azurite has closed a kept connection before it saw the request.
		out.on('error', (error) => resolve(
			out.reusedSocket && error.code === 'ECONNRESET' ? forward(req) : null));
		out.end(req.body);
	});
}

async function trueAnswer(req) {
	if (!trueReceipt(req)) return staleAnswer();
	const answer = await forward(req);
	if (!answer) return null;
	if (answer.headers['x-ms-error-code'] === 'PopReceiptMismatch' &&
		plan.stale !== 'mismatch')
		return staleAnswer();
	const { 'x-ms-popreceipt': receipt } = answer.headers;
	if (plan.real && receipt) {
		const shown = newReceipt();
		showReceipt(messageId(req), shown, receipt);
		answer.headers['x-ms-popreceipt'] = shown;
	}
	if (plan.real) answer.body = realBody(req.op, answer.body);
	return answer;
}

// The head goes out with HEADERS over those of the answer.
function head(res, answer, headers) {
	const all = { ...answer.headers, date: new Date(now()).toUTCString(), ...headers };
	for (const hop of ['connection', 'keep-alive', 'transfer-encoding'])
		delete all[hop];
	for (const name of Object.keys(all))
		if (all[name] === undefined) delete all[name];
	count('status', answer.status);
	res.writeHead(answer.status, all);
}

// As the service does: a body is chunked, none has no length but zero.
function send(res, answer) {
	if (!answer) return res.socket.resetAndDestroy();
	const empty = answer.body.length === 0 && answer.status !== 204;
	head(res, answer, { 'content-length': empty ? 0 : undefined });
	res.end(answer.body);
}

// ---- faults ------------------------------------------------------------------

function drawnRules(req) {
	const drawn = [];
	for (const rule of plan.rules) {
		if (rule.on && !rule.on.includes(req.op)) continue;
		if (rule.times === 0 || (rule.ends && Date.now() > rule.ends)) continue;
		if (rule.p !== undefined && draw() >= rule.p) continue;
		if (rule.times) rule.times--;
		if (rule.for_s && !rule.ends) rule.ends = Date.now() + rule.for_s * 1000;
		count('faults', rule.fault);
		drawn.push(rule);
		if (rule.fault !== 'delay') break;
	}
	return drawn;
}

// Spaces before the root element, without end.
function endless(res, answer, chunk, wait_ms) {
	head(res, answer);
	res.write((plan.real ? BOM : '') + '<?xml version="1.0" encoding="utf-8"?>');
	const more = () => {
		if (!res.destroyed && !res.socket.destroyed)
			res.write(chunk, () => setTimeout(more, wait_ms));
	};
	more();
}

function trickle(res, answer, wait_ms) {
	head(res, answer, { 'content-length': answer.body.length });
	let at = 0;
	const more = () => {
		if (at === answer.body.length) return res.end();
		res.write(answer.body.subarray(at, ++at), () => setTimeout(more, wait_ms));
	};
	more();
}

// The length that is promised and what comes differ by BY bytes.
function wrongLength(res, answer, by) {
	const body = answer.body.length ? answer.body : Buffer.from(' '.repeat(20));
	const socket = res.socket;
	const lines = Object.entries({
		...answer.headers, 'transfer-encoding': undefined, connection: undefined,
		'keep-alive': undefined, 'content-length': Math.max(0, body.length + by),
	}).filter(([, v]) => v !== undefined).map(([k, v]) => `${k}: ${v}\r\n`);
	count('status', answer.status);
	res.detachSocket(socket);
	socket.write(`HTTP/1.1 ${answer.status} Wrong\r\n${lines.join('')}\r\n`);
	socket.end(body);
}

const BOMB = '<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a0 "ha">' +
	Array.from({ length: 40 }, (_, i) => `<!ENTITY a${i + 1} "&a${i};&a${i};">`).join('') +
	']><QueueMessagesList><QueueMessage><MessageId>&a40;</MessageId></QueueMessage>' +
	'</QueueMessagesList>';
const GARBAGE = ['', '<html><body>Proxy error</body></html>', '<QueueMessagesList><QueueMess',
	'\0\x01\x02\xff', '<QueueMessagesList><QueueMessage><MessageId>a</MessageId>' +
	'</QueueMessage></QueueMessagesList>', '{"error":"no XML"}', '<a>'.repeat(100000)];

const withBody = (answer, body) => ({ ...answer, status: answer.status === 204 ? 200 :
	answer.status, body: Buffer.from(body, 'latin1') });

const FAULTS = {
	reset: (req, res) => res.socket.resetAndDestroy(),
	silent: () => {},
	lost: async (req, res) => { await trueAnswer(req); res.socket.resetAndDestroy(); },
	cut: async (req, res) => {
		const answer = await trueAnswer(req);
		if (answer) wrongLength(res, withBody(answer, answer.body.subarray(0,
			answer.body.length / 2)), answer.body.length + 1);
		else send(res, null);
	},
	long: async (req, res) => wrongLength(res, await trueAnswer(req) ||
		errorAnswer('internal', ''), 10),
	short: async (req, res) => wrongLength(res, await trueAnswer(req) ||
		errorAnswer('internal', ''), -10),
	endless: async (req, res, rule) => endless(res, await trueAnswer(req) ||
		errorAnswer('internal', ''), ' ', rule.ms || 50),
	flood: async (req, res) => endless(res, await trueAnswer(req) ||
		errorAnswer('internal', ''), ' '.repeat(65536), 0),
	trickle: async (req, res, rule) => trickle(res, await trueAnswer(req) ||
		errorAnswer('internal', ''), rule.ms || 50),
	garbage: async (req, res) => {
		const answer = await trueAnswer(req);
		send(res, answer && withBody(answer, GARBAGE[Math.floor(draw() * GARBAGE.length)]));
	},
	bomb: async (req, res) => {
		const answer = await trueAnswer(req);
		send(res, answer && withBody(answer, BOMB));
	},
};

async function fail(rule, req, res) {
	if (FAULTS[rule.fault]) return FAULTS[rule.fault](req, res, rule);
	if (!TEXTS[rule.fault]) throw new Error(`no fault ${rule.fault}`);
	if (rule.applied) await trueAnswer(req);
	return send(res, errorAnswer(rule.fault, '', retryAfter(rule)));
}

// ---- requests ----------------------------------------------------------------

async function answer(req, res) {
	req.op = operation(req);
	count('requests', req.op);
	if (!signatureIsGood(req)) {
		count('faults', 'bad_signature');
		return send(res, errorAnswer('denied', ''));
	}
	if (!clockIsGood(req)) {
		count('faults', 'bad_clock');
		return send(res, errorAnswer('denied', '<AuthenticationErrorDetail>The date is ' +
			'too far from ours</AuthenticationErrorDetail>'));
	}
	for (const rule of drawnRules(req)) {
		if (rule.fault !== 'delay') return fail(rule, req, res);
		await new Promise((resolve) => setTimeout(resolve, rule.ms));
	}
	return send(res, await trueAnswer(req));
}

function control(req, res) {
	if (req.method === 'PUT') setPlan(JSON.parse(req.body.toString()));
	res.end(JSON.stringify(counts) + '\n');
}

function begin(req, res) {
	const chunks = [];
	req.on('data', (c) => chunks.push(c));
	req.on('error', () => {});
	res.on('error', () => {});
	req.on('end', () => {
		req.body = Buffer.concat(chunks);
		const at = (req.url + '?').indexOf('?');
		req.path = req.url.slice(0, at);
		req.query = parseQuery(req.url.slice(at + 1));
		if (req.path === '/_faults') return control(req, res);
		answer(req, res).catch((error) => {
			console.error(error);
			process.exit(1);
		});
	});
}

setPlan({});
const server = http.createServer({ keepAliveTimeout: 5000 }, begin);
server.on('connection', (socket) => {
	counts.connections++;
	socket.on('error', () => {});
});
server.listen(Number(process.argv[3] || 0), '127.0.0.1', () => {
	console.log(`listening ${server.address().port}`);
});
