/** What wrk is told to send, where it is not the same request again and again. Each answers the path of a script. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { newFolder } from './subjects.ts'

async function script(text: (folder: string) => string): Promise<string> {
  const folder = await newFolder()
  const path = join(folder, 'script.lua')
  await writeFile(path, text(folder))
  return path
}

/** The tokens one after the other, from the first one or from anywhere. */
export async function tokenScript(tokens: readonly string[], random = false): Promise<string> {
  const folder = await newFolder()
  await writeFile(join(folder, 'tokens'), tokens.join('\n'))
  return script(
    () => `math.randomseed(os.time())
local tokens, at = {}, ${random ? 'nil' : '0'}
for line in io.lines("${folder}/tokens") do tokens[#tokens + 1] = "Bearer " .. line end
request = function()
  at = (at or math.random(#tokens)) % #tokens + 1
  return wrk.format("GET", nil, { ["Authorization"] = tokens[at] })
end`,
  )
}

/** A query of its own in each call. */
export const distinctScript = (path: string): Promise<string> =>
  script(
    () => `local at = 0
request = function()
  at = at + 1
  return wrk.format("GET", "${path}?n=" .. at)
end`,
  )

/** Bodies of so many bytes. */
export const uploadScript = (bytes: number): Promise<string> =>
  script(
    () => `wrk.method = "POST"
wrk.headers["Content-Type"] = "application/octet-stream"
wrk.body = string.rep("x", ${bytes})`,
  )

/** This body, the same again and again. */
export const bodyScript = (body: string, type = 'application/json'): Promise<string> =>
  script(
    () => `wrk.method = "POST"
wrk.headers["Content-Type"] = "${type}"
wrk.body = [[${body}]]`,
  )

/** A small change, the same again and again. */
export const changeScript = (): Promise<string> =>
  script(
    () => `wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{"Code":"SUPER1","Name":"A fund"}'`,
  )

/** So many milliseconds between an answer and the next request of its connection. */
export const pacedScript = (ms: number): Promise<string> =>
  script(() => `delay = function() return ${ms} end`)
