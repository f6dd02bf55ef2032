// SPDX-License-Identifier: MIT
// watch.cjs DIR: prints "add NAME" and "unlink NAME" as chokidar tells them;
// "ready" first. NODE_PATH has it.
const path = require("path");
const chokidar = require("chokidar");

const watcher = chokidar.watch(process.argv[2], { depth: 0 });
watcher.on("ready", () => console.log("ready"));
for (const event of ["add", "unlink"])
	watcher.on(event, (file) => console.log(event, path.basename(file)));
watcher.on("error", (error) => console.log("error", String(error)));
