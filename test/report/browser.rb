# frozen_string_literal: true

require "io/nonblock"
require "json"
require "tmpdir"
require "fileutils"

module Report
  # A headless Chromium, driven through the DevTools protocol over a pair of pipes (messages end with a zero byte), which
  # needs neither a WebSocket nor a port nor a thread of its own. One page; what it logs is kept.
  class Browser
    NAMES = %w[chromium chromium-browser google-chrome google-chrome-stable chrome].freeze
    PLACES = ["/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"].freeze
    PATIENCE = 40 # seconds for an answer: a busy machine is slow to start a browser

    class Error < StandardError; end

    # @return [String, nil] the program: $CHROMIUM, or the first one on PATH
    def self.program
      named = ENV["CHROMIUM"]
      return named if named && !named.empty?

      found = NAMES.product(ENV.fetch("PATH", "").split(File::PATH_SEPARATOR)).map { |name, folder| File.join(folder, name) }
      (found + PLACES).find { |path| File.file?(path) && File.executable?(path) }
    end

    # @return [Array<String>] errors, warnings and uncaught exceptions the page logged
    attr_reader :complaints

    def initialize(program)
      @profile = Dir.mktmpdir("headway-browser")
      @complaints = []
      @number = 0
      @buffer = +""
      @loaded = []
      start(program)
      target = call("Target.createTarget", { url: "about:blank" }, session: nil).fetch("targetId")
      @session = call("Target.attachToTarget", { targetId: target, flatten: true }, session: nil).fetch("sessionId")
      %w[Page.enable Runtime.enable Log.enable].each { |method| call(method) }
      call("Page.setLifecycleEventsEnabled", { enabled: true })
    end

    def open(path, width: 1280, height: 900, dark: false, touch: false)
      @complaints.clear
      call("Emulation.setDeviceMetricsOverride", { width:, height:, deviceScaleFactor: 1, mobile: false })
      call("Emulation.setTouchEmulationEnabled", { enabled: touch })
      scheme(dark)
      answer = call("Page.navigate", { url: path.match?(%r{\Ahttps?://}) ? path : "file://#{path}" })
      raise Error, "#{path}: #{answer["errorText"]}" if answer["errorText"]

      receive until @loaded.include?(answer.fetch("loaderId"))
    end

    def scheme(dark, media: "")
      call("Emulation.setEmulatedMedia", { media:, features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }] })
    end

    # The value of an expression, awaited if it is a promise.
    def evaluate(expression)
      answer = call("Runtime.evaluate", { expression:, returnByValue: true, awaitPromise: true })
      raise Error, answer.dig("exceptionDetails", "exception", "description") || answer.inspect if answer["exceptionDetails"]

      answer.dig("result", "value")
    end

    # Sends the page's form and waits for the page that answers: between the two there is none that could be asked.
    def submit
      before = @loaded.size
      evaluate("document.forms[0].submit()")
      receive until @loaded.size > before
    end

    # Lets what was asked for be drawn.
    def settle
      evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
    end

    def mouse(type, x, y, **more)
      call("Input.dispatchMouseEvent", { type:, x:, y:, **more })
    end

    def wheel(x, y, delta, control: false)
      mouse("mouseWheel", x, y, deltaX: 0, deltaY: delta, modifiers: control ? 2 : 0)
      settle
    end

    def touch(type, *points)
      call("Input.dispatchTouchEvent", { type:, touchPoints: points.map { |x, y| { x:, y: } } })
    end

    def key(key)
      code = { key:, text: key.length == 1 ? key : nil }.compact
      call("Input.dispatchKeyEvent", { type: "keyDown", **code })
      call("Input.dispatchKeyEvent", { type: "keyUp", key: })
      settle
    end

    def screenshot(path, whole: true)
      data = call("Page.captureScreenshot", { format: "png", captureBeyondViewport: whole }).fetch("data")
      File.binwrite(path, data.unpack1("m"))
    end

    def close
      call("Browser.close", session: nil)
    rescue Error, SystemCallError, IOError
      nil # gone already
    ensure
      [@requests, @answers].each(&:close)
      end_process
      FileUtils.rm_rf(@profile)
    end

    private

    def start(program)
      from_us, @requests = IO.pipe
      @answers, to_us = IO.pipe
      [@answers, @requests].each(&:binmode)
      [from_us, to_us].each { |pipe| pipe.nonblock = false } # the browser takes "nothing there yet" for the end
      @pid = Process.spawn(program, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
                           "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars", "--disable-extensions",
                           "--disable-background-networking", "--user-data-dir=#{@profile}",
                           3 => from_us, 4 => to_us, in: File::NULL, out: File::NULL, err: File::NULL)
      [from_us, to_us].each(&:close)
    end

    def end_process
      deadline = now + 5
      sleep 0.02 until (ended = Process.wait(@pid, Process::WNOHANG)) || now > deadline
      return if ended

      Process.kill(:KILL, @pid)
      Process.wait(@pid)
    end

    def call(method, params = {}, session: @session)
      number = @number += 1
      @requests.write(JSON.generate({ id: number, method:, params:, sessionId: session }.compact), "\0")
      loop do
        message = receive
        next unless message["id"] == number
        raise Error, "#{method}: #{message.dig("error", "message")}" if message["error"]

        return message["result"]
      end
    end

    def receive
      deadline = now + PATIENCE * Harness::TimeLimit.seconds_scale
      until (message = @buffer.slice!(/\A[^\0]*\0/n))
        raise Error, "the browser does not answer" unless @answers.wait_readable([deadline - now, 0].max)

        @buffer << @answers.readpartial(1 << 20)
      end
      JSON.parse(message.chomp("\0").force_encoding(Encoding::UTF_8)).tap { |parsed| note(parsed) }
    end

    def note(message)
      params = message["params"]
      case message["method"]
      when "Page.lifecycleEvent" then @loaded << params["loaderId"] if params["name"] == "load" # of the blank page too, and late
      when "Runtime.exceptionThrown" then @complaints << params.dig("exceptionDetails", "exception", "description").to_s
      when "Runtime.consoleAPICalled"
        @complaints << params["args"].map { _1["value"] || _1["description"] }.join(" ") if %w[error warning].include?(params["type"])
      when "Log.entryAdded" then @complaints << params.dig("entry", "text") if %w[error warning].include?(params.dig("entry", "level"))
      end
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
