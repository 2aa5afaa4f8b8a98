/** The version of this package. A worker that is installed for it has the same. */
export const VERSION = "0.2.0";
