#!/usr/bin/env node
// SPDX-License-Identifier: MIT
//
// azure_sdk.js COMMAND QUEUE [ARGUMENT...]: Microsoft's own client, for the other
// side of the queue. The account comes from AZURE_STORAGE_CONNECTION_STRING.
//
//   create | remove | clear    the queue
//   count                      its approximate number of messages
//   send N [SIZE]              N messages of SIZE bytes (100), one after the other
//   drain N                    receives 32 at a time and deletes each in turn; both
//                              print how many milliseconds that took
//   put TEXT [TTL_S [HIDE_S]]  one message; prints its id
//   putdir DIR ENCODING        the files in DIR, by name; ENCODING: text or base64
//   getdir DIR ENCODING N      N messages, each into DIR/ID, and deletes them
//   peek                       up to 32, a line of JSON for each
//   receive HIDE_S             the same, received
//   delete ID RECEIPT
//   update ID RECEIPT HIDE_S   prints the new receipt
//
// RETRY_MS (4000) is the client's first delay between tries.
'use strict';
const fs = require('fs');
const path = require('path');
const { QueueServiceClient } = require('@azure/storage-queue');

const [command, name, ...args] = process.argv.slice(2);

const service = QueueServiceClient.fromConnectionString(
	process.env.AZURE_STORAGE_CONNECTION_STRING,
	process.env.RETRY_MS ? { retryOptions: { retryDelayInMs: Number(process.env.RETRY_MS) } } : {});
const queue = service.getQueueClient(name);
const show = (what) => console.log(JSON.stringify(what));

// This client leaves character references as they came: an error of its own.
const unescaped = (text) => text.replace(/&#xD;/g, '\r');

async function timed(work) {
	const start = process.hrtime.bigint();
	await work();
	console.log(Math.round(Number(process.hrtime.bigint() - start) / 1e6));
}

// Calls WORK(message) for each until there were N.
async function receiveAll(n, work) {
	for (let done = 0; done < n;) {
		const { receivedMessageItems: got } = await queue.receiveMessages(
			{ numberOfMessages: 32, visibilityTimeout: 300 });
		if (got.length === 0) await new Promise((resolve) => setTimeout(resolve, 50));
		for (const message of got) {
			await work(message);
			await queue.deleteMessage(message.messageId, message.popReceipt);
			done++;
		}
	}
}

const commands = {
	create: () => queue.createIfNotExists(),
	remove: () => queue.delete(),
	clear: () => queue.clearMessages(),
	count: async () => console.log((await queue.getProperties()).approximateMessagesCount),
	send: (n, size = 100) => timed(async () => {
		for (let i = 0; i < Number(n); i++)
			await queue.sendMessage(`m-${String(i).padStart(6, '0')} `.padEnd(Number(size), 'x'));
	}),
	drain: (n) => timed(() => receiveAll(Number(n), () => {})),
	put: async (text, ttl = '604800', hide = '0') => {
		const sent = await queue.sendMessage(text, { messageTimeToLive: Number(ttl),
			visibilityTimeout: Number(hide) });
		console.log(sent.messageId);
	},
	putdir: async (dir, encoding) => {
		for (const file of fs.readdirSync(dir).sort())
			await queue.sendMessage(fs.readFileSync(path.join(dir, file)).toString(
				encoding === 'base64' ? 'base64' : 'utf8'));
	},
	getdir: (dir, encoding, n) => receiveAll(Number(n), (message) => {
		const body = encoding === 'base64' ? Buffer.from(message.messageText, 'base64') :
			unescaped(message.messageText);
		fs.writeFileSync(path.join(dir, message.messageId), body);
	}),
	peek: async () => (await queue.peekMessages({ numberOfMessages: 32 }))
		.peekedMessageItems.forEach(show),
	receive: async (hide) => (await queue.receiveMessages({ numberOfMessages: 32,
		visibilityTimeout: Number(hide) })).receivedMessageItems.forEach(show),
	delete: (id, receipt) => queue.deleteMessage(id, receipt),
	update: async (id, receipt, hide) => console.log((await queue.updateMessage(
		id, receipt, undefined, Number(hide))).popReceipt),
};

// A refusal is "STATUS CODE".
commands[command](...args).catch((error) => {
	console.error(`${error.statusCode || '-'} ${error.code || error.message}`);
	process.exit(1);
});
