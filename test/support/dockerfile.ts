import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { spawnSync } from 'node:child_process'

export interface Instruction {
  readonly name: string
  readonly text: string
}

/** The instructions of a Dockerfile, continued lines joined. */
export const readDockerfile = (text: string): readonly Instruction[] =>
  text
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const space = line.indexOf(' ')
      return { name: line.slice(0, space), text: line.slice(space + 1).trim() }
    })

/** The words of a COPY: its sources, where they go, and the stage they come from. */
export function readCopy(text: string): { from: string | undefined; sources: string[]; to: string } {
  const words = text.split(/ +/)
  const from = words.find((word) => word.startsWith('--from='))?.slice('--from='.length)
  const paths = words.filter((word) => !word.startsWith('--'))
  return { from, sources: paths.slice(0, -1), to: paths.at(-1) ?? '' }
}

/** A stage as it came to be: a folder that stands for the root of its file system, and its settings. */
export interface Stage {
  readonly root: string
  workdir: string
  readonly environment: Record<string, string>
}

/**
 * Carries out COPY and RUN of every stage as this user, each stage in a folder of its own below `folder`; absolute paths
 * of the image become paths in there. What needs a daemon (base images, users) is left out. Answers the last stage.
 */
export function replayDockerfile(text: string, context: string, folder: string): Stage {
  const stages = new Map<string, Stage>()
  let stage: Stage | undefined
  for (const instruction of readDockerfile(text)) {
    if (instruction.name === 'FROM') {
      const name = / AS (\w+)$/i.exec(instruction.text)?.[1] ?? 'last'
      stage = { root: join(folder, name), workdir: '/', environment: {} }
      stages.set(name, stage)
    } else if (stage) STEPS[instruction.name]?.(instruction.text, stage, { context, stages })
  }
  if (stage === undefined) throw new Error('a Dockerfile without FROM')
  return stage
}

interface Surroundings {
  readonly context: string
  readonly stages: ReadonlyMap<string, Stage>
}

type Step = (text: string, stage: Stage, dependencies: Surroundings) => void

const STEPS: Readonly<Record<string, Step>> = {
  WORKDIR: (text, stage) => {
    stage.workdir = text
    mkdirSync(join(stage.root, text), { recursive: true })
  },
  ENV: (text, stage) => {
    for (const [, name = '', value = ''] of text.matchAll(/(\w+)=(\S*)/g)) stage.environment[name] = value
  },
  COPY: (text, stage, { context, stages }) => {
    const { from, sources, to } = readCopy(text)
    const origin = from === undefined ? context : (stages.get(from)?.root ?? '')
    for (const source of sources) {
      const inside = to.endsWith('/') || sources.length > 1
      const target = join(stage.root, stage.workdir, to, inside ? source : '')
      cpSync(join(origin, source), target, { recursive: true })
    }
  },
  RUN: (text, stage) => {
    const command = inFolder(text.replaceAll(/ -[og] \w+/g, ''), stage)
    const environment = { ...process.env, ...environmentOf(stage), npm_config_prefer_offline: 'true' }
    const options = {
      cwd: join(stage.root, stage.workdir),
      env: environment,
      shell: true,
      encoding: 'utf8',
    } as const
    const { status, stdout, stderr } = spawnSync(command, options)
    if (status !== 0) throw new Error(`${command}: ${String(status)}\n${stdout}${stderr}`)
  },
}

/** Absolute paths of the image as they are here. */
const inFolder = (text: string, { root }: Stage): string => text.replaceAll(/(?<=^| )\/(?=\w)/g, `${root}/`)

export const environmentOf = (stage: Stage): Record<string, string> =>
  Object.fromEntries(Object.entries(stage.environment).map(([name, value]) => [name, inFolder(value, stage)]))
