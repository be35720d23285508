/** The Postern of an earlier commit, with the packages of its own lock file. */
import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { promisify } from 'node:util'
import { ROOT } from './spawn-postern.ts'

const run = promisify(execFile)

/** Whether this copy of the repository has its history. */
export const hasCommit = (commit: string): Promise<boolean> =>
  run('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: ROOT }).then(
    () => true,
    () => false,
  )

/** Lays it out in a folder that is not there yet. */
export async function layOut(commit: string, folder: string): Promise<void> {
  await mkdir(folder)
  const archive = `${folder}.tar`
  const parts = ['src', 'config', 'package.json', 'package-lock.json']
  await run('git', ['archive', '--output', archive, commit, ...parts], { cwd: ROOT })
  await run('tar', ['-xf', archive, '-C', folder])
  const options = ['--omit=dev', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund']
  await run('npm', ['ci', ...options], { cwd: folder })
}
