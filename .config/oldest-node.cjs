/**
 * Ends a Node that is too old, before it fails on TypeScript or on an option: the scripts of package.json load it first. That
 * of the bundle is src/main.ts itself.
 */
'use strict'
const { engines } = require('../package.json')

const numbersOf = (text) => text.match(/\d+/g).map(Number)
const [[major, minor], [leastMajor, leastMinor]] = [process.versions.node, engines.node].map(numbersOf)
if (major < leastMajor || (major === leastMajor && minor < leastMinor)) {
  const oldest = engines.node.replace('>=', '')
  process.stderr.write(`postern: needs Node ${oldest} or newer, and this is Node ${process.versions.node}\n`)
  process.exit(2)
}
