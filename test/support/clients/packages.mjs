import { registerHooks } from 'node:module'

/** Lets the programs of this folder import what `npm ci --prefix .config/servers` installed: `node --import`. */
const HERE = new URL('../../../.config/servers/package.json', import.meta.url).href
const isOwn = (parent = '') => parent.startsWith(new URL('.', import.meta.url).href)

registerHooks({
  resolve: (name, context, next) =>
    next(name, isOwn(context.parentURL) && /^[@a-z]/.test(name) ? { ...context, parentURL: HERE } : context),
})
