#!/usr/bin/env node
// SPDX-License-Identifier: MIT
//
// azure_ceiling.js URL QUEUE CONNECTIONS N: what the emulator at URL can do at all:
// N messages of 100 bytes sent, received 32 at a time and deleted, by a client
// that does nothing else, over so many kept connections. Prints "sends RATE",
// "gets RATE" (of 32) and "deletes RATE", each in requests a second.
'use strict';
const http = require('http');
const { DEV, formatQuery, sharedKey } = require('../faults/azure_sign.js');

const [url, queue, connections, n] = process.argv.slice(2);
const base = new URL(url);
const agent = new http.Agent({ keepAlive: true, maxSockets: Number(connections) });

function ask(method, tail, query, body = '') {
	const path = `/${DEV.name}/${queue}${tail}`;
	const headers = { 'x-ms-version': '2021-12-02', 'x-ms-date': new Date().toUTCString() };
	if (body || method !== 'GET') headers['content-length'] = String(Buffer.byteLength(body));
	if (body) headers['content-type'] = 'application/xml';
	headers.authorization = sharedKey(DEV, method, path, query, headers);
	return new Promise((resolve, reject) => {
		const text = formatQuery(query);
		const out = http.request({
			agent, method, headers, hostname: base.hostname, port: base.port,
			path: path + (text && '?' + text),
		}, (res) => {
			let got = '';
			res.setEncoding('utf8').on('data', (c) => { got += c; });
			res.on('end', () => (res.statusCode < 300 ? resolve(got) :
				reject(new Error(`${method} ${path}: ${res.statusCode} ${got}`))));
		});
		out.on('error', reject);
		out.end(body);
	});
}

// STEP() once for each connection at a time, until it is false; the rate.
async function rate(what, step) {
	const start = process.hrtime.bigint();
	let done = 0;
	await Promise.all(Array.from({ length: Number(connections) }, async () => {
		while (await step()) done++;
	}));
	const seconds = Number(process.hrtime.bigint() - start) / 1e9;
	console.log(`${what} ${Math.round(done / seconds)}`);
}

async function main() {
	const body = `<QueueMessage><MessageText>${'x'.repeat(100)}</MessageText></QueueMessage>`;
	const received = [];
	let left = Number(n);
	await ask('PUT', '', []);
	await rate('sends', () => left-- > 0 && ask('POST', '/messages', [], body));
	await rate('gets', async () => {
		if (received.length >= Number(n)) return false;
		const got = await ask('GET', '/messages',
			[['numofmessages', '32'], ['visibilitytimeout', '600']]);
		for (const [, id, receipt] of got.matchAll(
			/<MessageId>(.*?)<.*?<PopReceipt>(.*?)</gs))
			received.push([id, receipt]);
		return true;
	});
	await rate('deletes', async () => {
		const next = received.pop();
		if (!next) return false;
		await ask('DELETE', `/messages/${next[0]}`, [['popreceipt', next[1]]]);
		return true;
	});
	await ask('DELETE', '', []);
}

main().catch((error) => {
	console.error(error.message);
	process.exit(1);
});
