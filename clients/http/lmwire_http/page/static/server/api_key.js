// The API key, kept until the tab closes, or in this browser if the user says so.
const NAME = "lmwire.key";

function stored() {
  try {
    return sessionStorage.getItem(NAME) ?? localStorage.getItem(NAME) ?? "";
  } catch {
    return "";
  }
}

export const apiKey = {
  value: stored(),

  set(value, isRemembered) {
    this.value = value;
    try {
      sessionStorage.removeItem(NAME);
      localStorage.removeItem(NAME);
      if (value) (isRemembered ? localStorage : sessionStorage).setItem(NAME, value);
    } catch {} // the key lasts as long as the page
  },
};
