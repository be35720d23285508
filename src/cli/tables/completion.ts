import type { Verb } from '../../operator/verb.ts'
import type { CommandTable } from '../verbs.ts'

const BASH = {
  summary: 'Print the completion of bash, for commands, verbs, options and their values',
  arguments: [],
  options: {},
  examples: [
    {
      line: 'source <(postern completion bash)',
      does: 'complete in this shell; in ~/.bashrc, in every new one',
    },
  ],
} as const satisfies Verb

const ZSH = {
  summary: 'Print the completion of zsh, with what each command and option does',
  arguments: [],
  options: {},
  examples: [
    { line: 'postern completion zsh > "${fpath[1]}/_postern"', does: 'install it, for every new shell' },
    { line: 'source <(postern completion zsh)', does: 'complete in this shell, behind compinit' },
  ],
} as const satisfies Verb

export const COMPLETION = { verbs: { bash: BASH, zsh: ZSH } } as const satisfies CommandTable
