/** `postern completion bash|zsh`: made from the tables of all commands, so that it knows what they take (C11.6). */
import type { Terminal } from '../operator/terminal.ts'
import { EXIT } from '../operator/verb.ts'
import { type CommandName, COMMANDS, tableOfCommand } from './command-list.ts'
import { bashCompletion } from './completion/bash.ts'
import type { CompletedCommand } from './completion/values.ts'
import { zshCompletion } from './completion/zsh.ts'
import { COMPLETION } from './tables/completion.ts'
import { commandOf } from './verbs.ts'

const completed = (): Promise<readonly CompletedCommand[]> =>
  Promise.all(
    Object.entries(COMMANDS).map(async ([name, { summary }]) => ({
      name,
      summary,
      table: await tableOfCommand(name as CommandName),
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
