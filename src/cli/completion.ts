/** `postern completion bash|zsh`: made from the tables of all commands, so that it knows what they take (C11.6). */
import { EXIT } from '../operator/verb.ts'
import { COMMANDS } from './command-list.ts'
import type { Terminal } from './command.ts'
import { bashCompletion } from './completion/bash.ts'
import type { CompletedCommand } from './completion/values.ts'
import { zshCompletion } from './completion/zsh.ts'
import { COMPLETION } from './tables/completion.ts'
import { commandOf } from './verbs.ts'

const completed = (): Promise<readonly CompletedCommand[]> =>
  Promise.all(
    Object.entries(COMMANDS).map(async ([name, { summary, table }]) => ({
      ...{ name, summary },
      table: await table(),
    })),
  )

const print =
  (script: (commands: readonly CompletedCommand[]) => string) =>
  async (_given: unknown, { stdout }: Terminal): Promise<number> => {
    stdout.write(script(await completed()))
    return EXIT.done
  }

export const completionCommand = commandOf(COMPLETION, {
  bash: print(bashCompletion),
  zsh: print(zshCompletion),
})
