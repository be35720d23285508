/** Runs the commands that its parent sends, one after the other. For `openVerbs` (command-line.ts). */
import { PassThrough } from 'node:stream'
import type * as commandLine from '../../src/cli/command-line.ts'
import { collected } from './collected-command.ts'
import { IS_BUNDLE } from './program.ts'

const place = IS_BUNDLE ? '../../dist/cli/command-line.js' : '../../src/cli/command-line.ts'
const { runCommandLine } = (await import(place)) as typeof commandLine

async function run([args, env]: readonly [string[], Record<string, string>]): Promise<void> {
  process.send?.(await collected(runCommandLine, args, { env, stdin: new PassThrough().end() }))
}

process.on('message', (given) => void run(given as Parameters<typeof run>[0]))
