#!/usr/bin/env python3
"""browser.py DIRECTORY COMMAND…: a headless Chromium, driven by WebDriver (W3C), one command for each call.

  start WxH        starts chromedriver and the browser; stop ends them
  open URL         loads a page
  js SCRIPT        runs the body of a function, prints what it returns
  wait SCRIPT [S]  waits until an expression is true, S seconds at most (20): the poll is the browser's
  keys TEXT…       types into what has the focus; {Enter}, {Tab}, {Left}, … are keys
  shot FILE        saves what is seen as PNG
  errors           prints what the page's console has of errors since the last call
"""
import base64
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

directory, command, *arguments = sys.argv[1:]
state = os.path.join(directory, "browser.json")
KEYS = {"Enter": "\ue007", "Tab": "\ue004", "Escape": "\ue00c", "Left": "\ue012", "Up": "\ue013", "Right": "\ue014",
        "Down": "\ue015", "Space": " ", "Shift": "\ue008", "Home": "\ue011", "End": "\ue010", "Control": "\ue009"}


def ask(port, method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=90) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        value = json.load(error)["value"]
        sys.exit(f"{value['error']}: {value['message'].splitlines()[0]}")


def start(size):
    log = open(os.path.join(directory, "chromedriver.log"), "w+", encoding="utf-8")
    driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=log, stderr=log, start_new_session=True)
    port = None
    for _ in range(600):
        log.seek(0)
        if found := re.search(r"started successfully on port (\d+)", log.read()):
            port = int(found[1])
            break
        if driver.poll() is not None:
            break
        time.sleep(0.05)
    if not port:
        sys.exit("chromedriver did not start")
    with open(state, "w", encoding="utf-8") as file:
        json.dump({"pid": driver.pid}, file)
    switches = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={size.replace('x', ',')}",
                f"--user-data-dir={directory}/profile"]
    session = ask(port, "POST", "/session", {"capabilities": {"alwaysMatch": {
        "goog:loggingPrefs": {"browser": "ALL"}, "goog:chromeOptions": {"args": switches}}}})
    with open(state, "w", encoding="utf-8") as file:
        json.dump({"pid": driver.pid, "port": port, "session": session["sessionId"]}, file)


def main():
    if command == "start":
        return start(*arguments)
    with open(state, encoding="utf-8") as file:
        known = json.load(file)
    if command == "stop":
        if "session" in known:
            ask(known["port"], "DELETE", f"/session/{known['session']}")
        return os.killpg(known["pid"], signal.SIGKILL)
    session = f"/session/{known['session']}"

    def call(method, path, body=None):
        return ask(known["port"], method, session + path, body)

    def run(script):
        return call("POST", "/execute/sync", {"script": script, "args": []})

    if command == "open":
        call("POST", "/url", {"url": arguments[0]})
    elif command == "js":
        value = run(arguments[0])
        print(value if isinstance(value, str) else json.dumps(value))
    elif command == "wait":
        seconds = float(arguments[1]) if len(arguments) > 1 else 20
        call("POST", "/timeouts", {"script": int(seconds * 1000 + 30000)})
        met = call("POST", "/execute/async", {"args": [], "script": """
            const done = arguments[0], end = performance.now() + %d;
            const look = () => {
              let met = false;
              try { met = %s; } catch (error) { if (performance.now() > end) return done(String(error)); }
              if (met) return done(true);
              if (performance.now() > end) return done(false);
              setTimeout(look, 20);
            };
            look();""" % (int(seconds * 1000), arguments[0])})
        if met is not True:
            sys.exit(f"not met: {arguments[0]} {met}")
    elif command == "keys":
        keys = []
        for part in re.findall(r"\{\w+\}|.", " ".join(arguments), re.S):
            key = KEYS[part[1:-1]] if len(part) > 2 else part
            keys += [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": keys}]})
    elif command == "shot":
        with open(arguments[0], "wb") as file:
            file.write(base64.b64decode(call("GET", "/screenshot")))
    elif command == "errors":
        for line in call("POST", "/se/log", {"type": "browser"}):
            if line["level"] == "SEVERE":
                print(line["message"])
    else:
        sys.exit(f"{command}: unknown")
    return None


sys.exit(main())
