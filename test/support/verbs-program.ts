/** Runs the commands that its parent sends, one after the other. For `openVerbs` (command-line.ts). */
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import type * as commandLine from '../../src/cli/command-line.ts'
import { IS_BUNDLE } from './program.ts'

const place = IS_BUNDLE ? '../../dist/cli/command-line.js' : '../../src/cli/command-line.ts'
const { runCommandLine } = (await import(place)) as typeof commandLine

async function run([args, env]: readonly [string[], Record<string, string>]): Promise<void> {
  const [stdin, stdout, stderr] = [new PassThrough().end(), new PassThrough(), new PassThrough()]
  const told = Promise.all([text(stdout), text(stderr)])
  const code = await runCommandLine(args, {
    ...{ env, stdin: stdin as unknown as NodeJS.ReadStream, stdout, stderr },
  })
  stdout.end()
  stderr.end()
  const [out, error] = await told
  process.send?.({ code, stdout: out, stderr: error })
}

process.on('message', (given) => void run(given as Parameters<typeof run>[0]))
