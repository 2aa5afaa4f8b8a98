/**
 * A provider of the Vercel AI SDK for models that run as child processes of this program.
 *
 * @packageDocumentation
 */

export { createLmwire, type LmwireProvider, type LmwireSettings } from "./provider.js";
